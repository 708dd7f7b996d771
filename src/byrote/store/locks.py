# SPDX-License-Identifier: MIT
"""Updates many runs although another transaction has locked the rows of some.

Somebody's `select_for_update()` may hold a row for as long as that transaction lasts. A statement
that waits for it would hold up everything else it updates. So statements that update many runs wait
for `lock_timeout`, a quarter of a second, and fail with RowLocked. Then `locked.sql` finds out
which rows it was, the statement is sent again without them, and its caller tries those again later.
On the usual path this costs nothing: skipping locked rows in the statement itself would lock every
row twice.

A locked row is not a lost lease: whoever leaves it out says so.

What people do to runs by their ids (cancel, retry, delete) goes another way. Those statements never
wait: they skip locked rows and return them as `Locked`, which costs a second look at each row and
is safe inside a caller's transaction, since it raises nothing. `move` sends such a statement again
for the rows that were locked, for a second: a worker that renews or finishes a run holds its row
for milliseconds. What is locked for longer is reported with what was done.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any, Final

import msgspec

from byrote.core.errors import RowLocked
from byrote.core.ports.replies import LOCKED, Archived, Locked, say_locked
from byrote.store.query import Query

KNOWN_MAX = 10_000
PAUSES_S: Final = (0.02, 0.05, 0.1, 0.2, 0.3, 0.33)
"""Pauses before a verb is sent again for rows that were locked: a second in all."""

type LockScript = Generator[Query[Any], list[Any] | RowLocked, dict[str, Any]]
"""Yields queries, is sent their rows or that a row was locked; returns the answer for each id."""


def locked(ids: Sequence[str]) -> Query[str]:
    """Which of these runs another transaction has locked."""
    return Query("locked", {"ids": list(ids)}, lambda row: str(row[0]))


def holding(leases: Sequence[Mapping[str, Any]]) -> Query[str]:
    """Which of these leases, by id and token, hold now."""
    sent = [{"id": lease["id"], "token": lease["token"]} for lease in leases]
    return Query(
        "held_leases", {"leases": msgspec.json.encode(sent).decode()}, lambda row: str(row[0])
    )


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
    ) -> LockScript:
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


def drive(asking: LockScript, ask: Callable[[Query[Any]], list[Any]]) -> dict[str, Any]:
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
    asking: LockScript, ask: Callable[[Query[Any]], Awaitable[list[Any]]]
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


class Moves[Row](msgspec.Struct, frozen=True):
    """What a verb did to runs: the rows of those it moved, and the ids whose rows are locked."""

    done: list[Row]
    locked: list[str] = []

    @property
    def only(self) -> Row | None:
        """The row of a verb for one run, None if it does not apply; RowLocked if it is locked."""
        if self.locked:
            said = " ".join([say_locked(1), f"Nothing was done to run {self.locked[0]}."])
            raise RowLocked(said)
        return self.done[0] if self.done else None


type Verb[Row] = Callable[[Sequence[str]], Query[Row | Locked]]
"""Makes the statement that does something to runs with these ids."""


def move[Row](
    verb: Verb[Row], ids: Sequence[str], ask: Callable[[Query[Row | Locked]], list[Row | Locked]]
) -> Moves[Row]:
    """Do something to runs: at once to those that are free, soon to those that become free."""
    moves = _split(ask(verb(ids)))
    for pause in PAUSES_S:
        if not moves.locked:
            break
        threading.Event().wait(pause)
        moves = _joined(moves, ask(verb(moves.locked)))
    return moves


async def amove[Row](
    verb: Verb[Row],
    ids: Sequence[str],
    ask: Callable[[Query[Row | Locked]], Awaitable[list[Row | Locked]]],
) -> Moves[Row]:
    """As `move`, on an event loop."""
    moves = _split(await ask(verb(ids)))
    for pause in PAUSES_S:
        if not moves.locked:
            break
        await asyncio.sleep(pause)
        moves = _joined(moves, await ask(verb(moves.locked)))
    return moves


def moved[Row](rows: Sequence[Row | Locked]) -> list[Row]:
    """The rows of runs that were moved."""
    return [row for row in rows if not isinstance(row, Locked)]


def _split[Row](rows: Sequence[Row | Locked]) -> Moves[Row]:
    return Moves(moved(rows), [row.id for row in rows if isinstance(row, Locked)])


def _joined[Row](before: Moves[Row], rows: Sequence[Row | Locked]) -> Moves[Row]:
    now = _split(rows)
    return Moves([*before.done, *now.done], now.locked)
