# SPDX-License-Identifier: MIT
from django.apps import AppConfig


class ByroteConfig(AppConfig):
    """Byrote as a Django app: its tables, its admin, its checks, its command."""

    name = "byrote.django"
    label = "byrote"
    verbose_name = "Byrote"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks."""
        from byrote.django import checks  # noqa: F401, PLC0415 -- registering is what it does.
