# SPDX-License-Identifier: MIT
import os

from django.apps import AppConfig


class ShopConfig(AppConfig):
    name = "tests.django.shop"
    label = "shop"

    def ready(self) -> None:
        if os.environ.get("SHOP_RECEIVERS"):
            from tests.django.shop.receivers import connect  # noqa: PLC0415 -- models are ready.

            connect(os.environ["SHOP_RECEIVERS"])
