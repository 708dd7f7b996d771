# SPDX-License-Identifier: MIT
"""Filters of the list of runs: status, queue, task, age, label.

Ids are ordered by time, and every table of runs has an index on them: filtering by age is cheap,
and makes every other filter cheap.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.utils import timezone

from byrote.django.models import STATUSES, DeadRun, Run, TaskRun
from byrote.store import queries

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
AGES = {
    "1h": ("Past hour", HOUR),
    "1d": ("Past day", DAY),
    "7d": ("Past 7 days", 7 * DAY),
    "30d": ("Past 30 days", 30 * DAY),
    "over1h": ("Older than an hour", HOUR),
    "over1d": ("Older than a day", DAY),
    "over7d": ("Older than 7 days", 7 * DAY),
}
SKEW = HOUR
"""Tolerated clock error of the process that made an id."""
NAMES_SHOWN = 50


def table_of(status: str | None) -> Any:
    """Return the smallest table that contains all runs of a status."""
    if status == "FAILED":
        return DeadRun
    return TaskRun if status in {"WAITING", "READY", "RUNNING"} else Run


class StatusFilter(admin.SimpleListFilter):
    """Filter by status. It comes first because it chooses the table for the other filters."""

    title = "status"
    parameter_name = "status"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Every status."""
        del request
        self.rows = model_admin.rows
        return STATUSES

    def queryset(self, request: Any, queryset: Any) -> Any:
        """The runs with that status."""
        del request
        status = self.value()
        if status is None:
            return queryset
        if status not in dict(STATUSES):
            raise IncorrectLookupParameters
        return self.rows(table_of(status)).filter(status=status)


class _NameFilter(admin.SimpleListFilter):
    field: str
    column: str

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Names in use, and the selected one."""
        used = [name for field, name in _names(request, model_admin) if field == self.field]
        chosen = self.value()
        shown = used[:NAMES_SHOWN]
        return [(name, name) for name in sorted({*shown, *([chosen] if chosen else [])})]

    def queryset(self, request: Any, queryset: Any) -> Any:
        """The runs with that name."""
        del request
        return queryset.filter(**{self.column: self.value()}) if self.value() else queryset


def _names(request: Any, model_admin: Any) -> list[tuple[str, str]]:
    # Cached on the request: two filters of one page need them.
    if not hasattr(request, "byrote_names"):
        request.byrote_names = model_admin.ask(queries.filter_names())
    return list(request.byrote_names)


class QueueFilter(_NameFilter):
    """Filter by queue."""

    title, parameter_name, field, column = "queue", "queue", "queue", "queue_name"


class TaskFilter(_NameFilter):
    """Filter by task, whether it still exists or not."""

    title, parameter_name, field, column = "task", "task", "task", "task_path"


class AgeFilter(admin.SimpleListFilter):
    """Filter by the time since a run was enqueued."""

    title = "age"
    parameter_name = "age"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """The ages to choose from."""
        del request, model_admin
        return [(name, label) for name, (label, _) in AGES.items()]

    def queryset(self, request: Any, queryset: Any) -> Any:
        """The runs of that age."""
        del request
        age = self.value()
        if age is None:
            return queryset
        if age not in AGES:
            raise IncorrectLookupParameters
        moment = timezone.now() - AGES[age][1]
        if age.startswith("over"):
            return queryset.filter(result_id__lte=id_at(moment + SKEW), enqueued_at__lt=moment)
        return queryset.filter(result_id__gte=id_at(moment - SKEW), enqueued_at__gte=moment)


def id_at(moment: datetime) -> UUID:
    """Return the smallest id that could have been made at a moment."""
    return UUID(int=int(moment.timestamp() * 1000) << 80)


class LabelFilter(admin.SimpleListFilter):
    """Filter by a label written `name=value`, or by its name alone."""

    title = "label"
    parameter_name = "label"
    template = "admin/byrote/label_filter.html"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """One empty choice: the user types the label."""
        del model_admin
        self.others = [(name, value) for name, value in request.GET.items() if name != "label"]
        return [("", "")]

    def choices(self, changelist: Any) -> Iterator[dict[str, Any]]:
        """Context for the form in the template."""
        yield {
            "value": self.value() or "",
            "others": [pair for pair in self.others if pair[0] not in {"before", "after", "e"}],
            "clear": changelist.get_query_string(remove=[self.parameter_name]),
        }

    def queryset(self, request: Any, queryset: Any) -> Any:
        """The runs with the label."""
        del request
        name, equals, value = (self.value() or "").strip().partition("=")
        if not name:
            return queryset
        if equals:
            return queryset.filter(labels__contains={name.strip(): value.strip()})
        return queryset.filter(labels__has_key=name)
