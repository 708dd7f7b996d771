# SPDX-License-Identifier: MIT
from django.apps import AppConfig


class ShopConfig(AppConfig):
    name = "shop"
