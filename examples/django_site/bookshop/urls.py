# SPDX-License-Identifier: MIT
from django.contrib import admin
from django.urls import path
from shop import views

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", views.sign_up),
    path("imports/", views.upload),
    path("imports/<int:import_id>/", views.import_progress),
]
