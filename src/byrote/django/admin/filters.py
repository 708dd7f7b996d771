# SPDX-License-Identifier: MIT
"""What the list of runs can be narrowed by: status, queue, task, age, label.

Ids are time ordered, and every table of runs has an index on them: narrowing by age is cheap, and
makes every other filter cheap.
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
"""By how much the clock of whoever made an id may be off."""
NAMES_SHOWN = 50


def table_of(status: str | None) -> Any:
    """The smallest table that has all runs of a status."""
    if status == "FAILED":
        return DeadRun
    return TaskRun if status in {"WAITING", "READY", "RUNNING"} else Run


class StatusFilter(admin.SimpleListFilter):
    """By where a run stands. The first filter: it chooses the table the others narrow."""

    title = "status"
    parameter_name = "status"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Every status."""
        del request
        self.rows = model_admin.rows
        return STATUSES

    def queryset(self, request: Any, queryset: Any) -> Any:
        """The runs that stand there."""
        del request
        status = self.value()
        if status is None:
            return queryset
        if status not in dict(STATUSES):
            raise IncorrectLookupParameters
        return self.rows(table_of(status)).filter(status=status)


class _NameFilter(admin.SimpleListFilter):
    kind: str
    column: str

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Names that are about, and the one that was asked for."""
        about = [name for kind, name in _names(request, model_admin) if kind == self.kind]
        chosen = self.value()
        shown = about[:NAMES_SHOWN]
        return [(name, name) for name in sorted({*shown, *([chosen] if chosen else [])})]

    def queryset(self, request: Any, queryset: Any) -> Any:
        """The runs of that name."""
        del request
        return queryset.filter(**{self.column: self.value()}) if self.value() else queryset


def _names(request: Any, model_admin: Any) -> list[tuple[str, str]]:
    # Two filters of one page ask for them.
    if not hasattr(request, "byrote_names"):
        request.byrote_names = model_admin.ask(queries.filter_names())
    return list(request.byrote_names)


class QueueFilter(_NameFilter):
    """By queue."""

    title, parameter_name, kind, column = "queue", "queue", "queue", "queue_name"


class TaskFilter(_NameFilter):
    """By task, whether it still exists or not."""

    title, parameter_name, kind, column = "task", "task", "task", "task_path"


class AgeFilter(admin.SimpleListFilter):
    """By when a run was enqueued."""

    title = "age"
    parameter_name = "age"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """A few ages."""
        del request, model_admin
        return [(name, label) for name, (label, _) in AGES.items()]

    def queryset(self, request: Any, queryset: Any) -> Any:
        """The runs of that age."""
        del request
        wanted = self.value()
        if wanted is None:
            return queryset
        if wanted not in AGES:
            raise IncorrectLookupParameters
        moment = timezone.now() - AGES[wanted][1]
        if wanted.startswith("over"):
            return queryset.filter(result_id__lte=id_at(moment + SKEW), enqueued_at__lt=moment)
        return queryset.filter(result_id__gte=id_at(moment - SKEW), enqueued_at__gte=moment)


def id_at(moment: datetime) -> UUID:
    """The smallest id that could have been made at a moment."""
    return UUID(int=int(moment.timestamp() * 1000) << 80)


class LabelFilter(admin.SimpleListFilter):
    """By a label, written `name=value`, or by having one of a name."""

    title = "label"
    parameter_name = "label"
    template = "admin/byrote/label_filter.html"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Nothing to choose from: labels are typed."""
        del model_admin
        self.others = [(name, value) for name, value in request.GET.items() if name != "label"]
        return [("", "")]

    def choices(self, changelist: Any) -> Iterator[dict[str, Any]]:
        """What the template needs of the form."""
        yield {
            "value": self.value() or "",
            "others": [pair for pair in self.others if pair[0] not in {"before", "after", "e"}],
            "clear": changelist.get_query_string(remove=[self.parameter_name]),
        }

    def queryset(self, request: Any, queryset: Any) -> Any:
        """The runs that have the label."""
        del request
        name, given, value = (self.value() or "").strip().partition("=")
        if not name:
            return queryset
        if given:
            return queryset.filter(labels__contains={name.strip(): value.strip()})
        return queryset.filter(labels__has_key=name)
