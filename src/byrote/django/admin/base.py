# SPDX-License-Identifier: MIT
"""Base of the admin pages: they read the runs' database and save nothing through Django's forms."""

from typing import Any

import django
from django.contrib import admin
from django.db import router
from django.http import HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse

from byrote.django import compat
from byrote.django.backend.backend import Backend
from byrote.django.backend.database import fetch
from byrote.django.models import TaskRun
from byrote.store.query import Query


class ByroteAdmin(admin.ModelAdmin):
    """A ModelAdmin without add and change forms: only Byrote's statements write its rows."""

    database: str | None = None
    """Alias of the runs' database; None for that of the first Byrote backend in TASKS."""

    def alias(self) -> str:
        """The alias of the database that these pages show."""
        return self.database or default_alias()

    def ask[Row](self, query: Query[Row]) -> list[Row]:
        """Execute a query on that database and return all rows."""
        return fetch(self.alias(), query)

    def has_add_permission(self, request: Any) -> bool:
        """Rows cannot be added in the admin."""
        del request
        return False

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        """Rows cannot be edited in the admin."""
        del request, obj
        return False

    def list_only_urls(self) -> list[Any]:
        """URL names that generic admin code reverses; all redirect to the list."""
        name = f"{self.opts.app_label}_{self.opts.model_name}"
        to_list = self.admin_site.admin_view(self.to_list)
        return [
            path("<path:object_id>/history/", to_list, name=f"{name}_history"),
            path("<path:object_id>/change/", to_list, name=f"{name}_change"),
        ]

    def to_list(self, request: Any, object_id: str | None = None) -> HttpResponseRedirect:
        """Redirect to the list, which is the model's only page."""
        del request, object_id
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"
        return HttpResponseRedirect(reverse(name, current_app=self.admin_site.name))

    def may(self, request: Any, permission: str) -> bool:
        """Whether the user has a permission of this app."""
        return bool(request.user.has_perm(f"{self.opts.app_label}.{permission}"))

    def page(self, request: Any, template: str, *crumbs: str, **context: Any) -> TemplateResponse:
        """Render one of Byrote's templates inside the admin's layout."""
        request.current_app = self.admin_site.name
        frame = self.admin_site.each_context(request)
        # Breadcrumbs became a list in Django 6.1, whose styles support nothing else.
        frame |= {"crumbs": self._crumbs(*crumbs), "listed": django.VERSION >= (6, 1)}
        return TemplateResponse(
            request, f"admin/byrote/{template}", {**frame, "opts": self.opts, **context}
        )

    def _crumbs(self, *below: str) -> list[tuple[str, str]]:
        """Breadcrumbs as (name, URL); the URL of the current page is empty."""
        site, label = self.admin_site.name, self.opts.app_label
        app = reverse("admin:app_list", kwargs={"app_label": label}, current_app=site)
        index = reverse("admin:index", current_app=site)
        way = [("Home", index), (self.opts.app_config.verbose_name, app)]
        plural = str(self.opts.verbose_name_plural).capitalize()
        if not below:
            return [*way, (plural, "")]
        listing = f"admin:{label}_{self.opts.model_name}_changelist"
        return [*way, (plural, reverse(listing, current_app=site)), *((name, "") for name in below)]


def default_alias() -> str:
    """Alias of the first Byrote backend's database; without a backend, the router's choice."""
    for backend in compat.task_backends.all():
        if isinstance(backend, Backend):
            return backend.database
    return str(router.db_for_write(TaskRun))
