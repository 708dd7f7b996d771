# SPDX-License-Identifier: MIT
"""Queues in the admin: depths and the age of the oldest ready run; pause and resume."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_POST

from byrote.core.unserved import end_of, like
from byrote.django import times
from byrote.django.admin import display
from byrote.django.admin.base import ByroteAdmin
from byrote.django.models import Queue
from byrote.store import queries
from byrote.store.queries.queues import unserved_tasks
from byrote.store.rows import QueueRow

VERBS = {"pause": (queries.pause, "paused"), "resume": (queries.resume, "open")}


@admin.register(Queue)
class QueueAdmin(ByroteAdmin):
    """The queues of this database."""

    def get_urls(self) -> list[Any]:
        """The list and its buttons."""
        wrap = self.admin_site.admin_view
        act = csrf_protect(require_POST(self.act_view))
        return [
            path("", wrap(self.changelist_view), name="byrote_queue_changelist"),
            path("do/<slug:name>/", wrap(act), name="byrote_queue_do"),
            *self.list_only_urls(),
        ]

    def changelist_view(self, request: Any, extra_context: Any = None) -> HttpResponse:
        """The list: every queue with its depths."""
        del extra_context
        if not self.has_view_permission(request):
            raise PermissionDenied
        rows = self.ask(queries.depths(most=queries.LIST_MAX))
        # The counting limit of these two applies to the sum over all queues.
        capped = {part: sum(getattr(row, part) for row in rows) for part in ("waiting", "running")}
        found = [_shown(row, capped) for row in rows]
        may = self.may(request, "pause_queue")
        unserved = [
            f"{one.queue}: no live worker knows {one.key}{like(one.key, one.known)}. "
            f"{end_of(one.unserved_for)}"
            for one in self.ask(unserved_tasks())
        ]
        shown = {"queues": found, "unserved": unserved, "may_pause": may}
        return self.page(request, "queues.html", title="Queues", **shown)

    def act_view(self, request: Any, name: str) -> HttpResponse:
        """Pause or resume a queue; a repeated request has no further effect."""
        if not self.may(request, "pause_queue"):
            raise PermissionDenied
        if name not in VERBS:
            raise Http404(name)
        queue = request.POST.get("queue", "")
        if queue not in {row.queue for row in self.ask(queries.depths(most=queries.LIST_MAX))}:
            raise Http404("The queue does not exist.")
        verb, state = VERBS[name]
        self.ask(verb(queue))
        messages.success(request, f"Queue {queue} is {state}.")
        where = reverse("admin:byrote_queue_changelist", current_app=self.admin_site.name)
        return HttpResponseRedirect(where)


def _shown(row: QueueRow, capped: Mapping[str, int]) -> dict[str, Any]:
    counted = {name: getattr(row, name) for name in ("ready", "waiting", "running", "dead")}
    oldest = row.oldest_ready_s
    return {
        "row": row,
        "state": times.badge("open" if row.paused_at is None else "paused"),
        "paused": times.moment(row.paused_at),
        "oldest": "" if oldest is None else times.rough(timedelta(seconds=max(round(oldest), 0))),
        **{
            name: display.count(number, whole=capped.get(name, number) < queries.LIST_MAX)
            for name, number in counted.items()
        },
    }
