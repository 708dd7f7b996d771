# SPDX-License-Identifier: MIT
"""What the pages of the admin have in common: they read where the runs live, and save no rows."""

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
    """Rows are moved by Byrote's statements only, so nothing is saved as Django's forms do."""

    database: str | None = None
    """Where the runs live; None is where the first Byrote backend of TASKS has them."""

    def home(self) -> str:
        """The alias of the database that these pages show."""
        return self.database or default_home()

    def ask[Row](self, query: Query[Row]) -> list[Row]:
        """Every row of the answer."""
        return fetch(self.home(), query)

    def has_add_permission(self, request: Any) -> bool:
        """Nobody adds rows by hand."""
        del request
        return False

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        """Nobody changes rows by hand."""
        del request, obj
        return False

    def list_only_urls(self) -> list[Any]:
        """The other addresses that code for any admin reverses; all lead to the list."""
        name = f"{self.opts.app_label}_{self.opts.model_name}"
        to_list = self.admin_site.admin_view(self.to_list)
        return [
            path("<path:object_id>/history/", to_list, name=f"{name}_history"),
            path("<path:object_id>/change/", to_list, name=f"{name}_change"),
        ]

    def to_list(self, request: Any, object_id: str | None = None) -> HttpResponseRedirect:
        """Send the browser to the list of all rows, which is the only page there is."""
        del request, object_id
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"
        return HttpResponseRedirect(reverse(name, current_app=self.admin_site.name))

    def may(self, request: Any, permission: str) -> bool:
        """Whether this person has one of our permissions."""
        return bool(request.user.has_perm(f"{self.opts.app_label}.{permission}"))

    def page(self, request: Any, template: str, *crumbs: str, **context: Any) -> TemplateResponse:
        """A page of ours in the frame of the admin."""
        request.current_app = self.admin_site.name
        frame = self.admin_site.each_context(request)
        # Breadcrumbs became a list in Django 6.1, and its styles know nothing else.
        frame |= {"crumbs": self._crumbs(*crumbs), "listed": django.VERSION >= (6, 1)}
        return TemplateResponse(
            request, f"admin/byrote/{template}", {**frame, "opts": self.opts, **context}
        )

    def _crumbs(self, *below: str) -> list[tuple[str, str]]:
        """The way to a page; a page itself has no address there."""
        site, label = self.admin_site.name, self.opts.app_label
        app = reverse("admin:app_list", kwargs={"app_label": label}, current_app=site)
        home = reverse("admin:index", current_app=site)
        way = [("Home", home), (self.opts.app_config.verbose_name, app)]
        plural = str(self.opts.verbose_name_plural).capitalize()
        if not below:
            return [*way, (plural, "")]
        listing = f"admin:{label}_{self.opts.model_name}_changelist"
        return [*way, (plural, reverse(listing, current_app=site)), *((name, "") for name in below)]


def default_home() -> str:
    """The database of the first Byrote backend; without one, where the router has the tables."""
    for backend in compat.task_backends.all():
        if isinstance(backend, Backend):
            return backend.database
    return str(router.db_for_write(TaskRun))
