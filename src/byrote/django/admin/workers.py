# SPDX-License-Identifier: MIT
"""Workers in the admin: their state, load and last heartbeat."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.urls import path

from byrote.django import times
from byrote.django.admin.base import ByroteAdmin
from byrote.django.models import Worker
from byrote.store import queries
from byrote.store.rows import WorkerRow


@admin.register(Worker)
class WorkerAdmin(ByroteAdmin):
    """The workers of this database."""

    def get_urls(self) -> list[Any]:
        """The list."""
        page = self.admin_site.admin_view(self.changelist_view)
        return [path("", page, name="byrote_worker_changelist"), *self.list_only_urls()]

    def changelist_view(self, request: Any, extra_context: Any = None) -> HttpResponse:
        """The list: every registered worker with its load and last heartbeat."""
        del extra_context
        if not self.has_view_permission(request):
            raise PermissionDenied
        workers = [
            {"row": row, "state": times.badge(_state(row)), "seen": times.moment(row.seen_at)}
            for row in self.ask(queries.workers())
        ]
        return self.page(request, "workers.html", title="Workers", workers=workers)


def _state(row: WorkerRow) -> str:
    # A worker stores "idle" a moment after its last run; the page shows it at once.
    state = row.state
    return "idle" if state == "busy" and not row.running else state
