# SPDX-License-Identifier: MIT
"""Updates many runs although another transaction has locked the rows of some.

Somebody's `select_for_update()` may hold a row for as long as that transaction lasts. A statement
that waits for it would hold up everything else it updates. So statements that update many runs wait
for `lock_timeout`, a quarter of a second, and fail with RowLocked. Then `locked.sql` finds out
which rows it was, the statement is sent again without them, and its caller tries those again later.
On the usual path this costs nothing: skipping locked rows in the statement itself would lock every
row twice.

A locked row is not a lost lease: whoever leaves it out says so.
"""

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any

import msgspec

from byrote.core.answer import LOCKED, Archived
from byrote.core.errors import RowLocked
from byrote.store.query import Query

KNOWN_MAX = 10_000

type Asking = Generator[Query[Any], list[Any] | RowLocked, dict[str, Any]]
"""Yields queries, is sent their rows or that a row was locked; returns the answer for each id."""


def locked(ids: Sequence[str]) -> Query[str]:
    """Which of these runs another transaction has locked."""
    return Query("locked", {"ids": list(ids)}, lambda row: str(row[0]))


def holding(leases: Sequence[Mapping[str, Any]]) -> Query[str]:
    """Which of these leases, by id and token, hold now."""
    sent = [{"id": lease["id"], "token": lease["token"]} for lease in leases]
    return Query("holding", {"leases": msgspec.json.encode(sent).decode()}, lambda row: str(row[0]))


def archive_around(*, after: str, limit: int) -> Query[Archived]:
    """Move finished runs that lie after a cursor to the archive, but those that are locked."""
    return Query("archive_around", {"after": after, "limit": limit}, lambda row: Archived(*row))


class Detour:
    """Sends statements around rows that are locked. Remembers which were, to look there first."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def around[Entry](
        self,
        entries: Mapping[str, Entry],
        statement: Callable[[Sequence[Entry]], Query[tuple[str, Any]]],
    ) -> Asking:
        """Send a statement for these; its answer by id, and LOCKED for what it was not sent for."""
        passed_by: set[str] = set()
        suspects = self._known & entries.keys()
        if suspects:
            self._known -= suspects
            passed_by = yield from _find(sorted(suspects))
        answers: dict[str, Any] = {}
        batches = [[run_id for run_id in entries if run_id not in passed_by]]
        while batches:
            batch = batches.pop()
            if not batch:
                continue
            answer = yield statement([entries[run_id] for run_id in batch])
            if not isinstance(answer, RowLocked):
                answers |= dict(answer)
                continue
            found = (yield from _find(batch)) or set(batch if len(batch) == 1 else ())
            passed_by |= found
            left = [run_id for run_id in batch if run_id not in found]
            # Nothing is locked any more, or by a lock that only some updates wait for.
            half = 0 if found else len(left) // 2
            batches += [left[:half], left[half:]]
        # Of what nobody asks for again there may be any number: then it is better forgotten.
        self._known = (self._known if len(self._known) < KNOWN_MAX else set()) | passed_by
        return answers | dict.fromkeys(passed_by, LOCKED)


def _find(ids: Sequence[str]) -> Generator[Query[Any], list[Any] | RowLocked, set[str]]:
    found = yield locked(ids)
    return set(ids) if isinstance(found, RowLocked) else set(found)


def drive(asking: Asking, ask: Callable[[Query[Any]], list[Any]]) -> dict[str, Any]:
    """Run the queries of a detour with whatever asks them."""
    try:
        query = next(asking)
        while True:
            try:
                answer: list[Any] | RowLocked = ask(query)
            except RowLocked as error:
                answer = error
            query = asking.send(answer)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


async def adrive(
    asking: Asking, ask: Callable[[Query[Any]], Awaitable[list[Any]]]
) -> dict[str, Any]:
    """Run the queries of a detour with whatever asks them on an event loop."""
    try:
        query = next(asking)
        while True:
            try:
                answer: list[Any] | RowLocked = await ask(query)
            except RowLocked as error:
                answer = error
            query = asking.send(answer)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
