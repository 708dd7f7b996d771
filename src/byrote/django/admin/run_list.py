# SPDX-License-Identifier: MIT
"""The list of runs, with keyset pagination by id.

It uses neither COUNT nor OFFSET: a page is the next hundred ids of an index, also in a table of
many millions of rows. A filter that matches few of many rows may still have to read many; it gets
a few seconds, and then the page asks the user to narrow it.
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db import OperationalError, transaction

from byrote.django.backend.database import fetch
from byrote.store import queries

PATIENCE = timedelta(seconds=5)
TURNS = ("before", "after")
CANCELED = "57014"
TOO_LONG = (
    "The search for these runs took too long and was stopped. "
    "Narrow the list by age: recent days are fast to read."
)


class RunList(ChangeList):
    """One page of runs, newest first, with links to newer and older pages."""

    def get_queryset(self, request: Any, exclude_parameters: Any = None) -> Any:
        """The runs that match the filters, on all pages."""
        for turn in TURNS:  # The page is not a filter, and links to other filters drop it.
            self.params.pop(turn, None)
            self.filter_params.pop(turn, None)
        return super().get_queryset(request, exclude_parameters)

    def get_ordering(self, request: Any, queryset: Any) -> list[str]:
        """Newest first; any other order would have to read all rows."""
        del request, queryset
        return ["-result_id"]

    def get_results(self, request: Any) -> None:
        """Read one page."""
        before, after = (_id_of(request.GET.get(turn)) for turn in TURNS)
        try:
            found, more = self._page(before, after)
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", None) != CANCELED:
                raise
            messages.error(request, TOO_LONG)
            found, more = [], False
        self.result_list = found
        self._turn(bool(before), bool(after), more=more)
        # Attributes that the admin's templates read; no rows were counted for them.
        self.result_count = len(found)
        self.full_result_count = len(found)
        self.show_full_result_count = False
        self.show_admin_actions = True
        self.can_show_all = self.multi_page = False
        self.paginator = Paginator(found, self.list_per_page)

    def _page(self, before: UUID | None, after: UUID | None) -> tuple[list[Any], bool]:
        rows, size = self.queryset, self.list_per_page
        if after is not None:
            rows = rows.filter(result_id__gt=after).order_by("result_id")
        elif before is not None:
            rows = rows.filter(result_id__lt=before)
        with transaction.atomic(using=rows.db):
            fetch(rows.db, queries.set_timeout(PATIENCE))
            found = list(rows[: size + 1])
        page = found[:size]
        return page[::-1] if after is not None else page, len(found) > size

    def _turn(self, before: bool, after: bool, *, more: bool) -> None:
        newer = bool(self.result_list) and (before or (after and more))
        older = bool(self.result_list) and (after or more)
        ends = [str(run.result_id) for run in (self.result_list or [])]
        self.newer = self.get_query_string({"after": ends[0]}) if newer else None
        self.older = self.get_query_string({"before": ends[-1]}) if older else None
        self.newest = self.get_query_string() if before or after else None


def _id_of(text: str | None) -> UUID | None:
    try:
        return None if text is None else UUID(text)
    except ValueError:
        raise IncorrectLookupParameters from None
