# SPDX-License-Identifier: MIT
"""Updates many runs although another transaction has locked the rows of some.

A `select_for_update()` of an application may hold a row for as long as its transaction lasts. A
statement that waits for it would delay everything else it updates. So statements that update many
runs wait for `lock_timeout`, a quarter of a second, and fail with RowLocked. Then `locked.sql`
finds the locked rows, the statement is sent again without them, and its caller retries those later.
On the usual path this costs nothing: skipping locked rows in the statement itself would lock every
row twice.

A locked row is not a lost lease: the answer has LOCKED for a row that was left out.

The commands on runs by their ids (cancel, retry, delete) work differently. Those statements never
wait: they skip locked rows and return them as `Locked`, which costs a second read of each row and
is safe inside a caller's transaction, since it raises nothing. `moving` repeats such a statement
for the rows that were locked, for a second: a worker that renews or finishes a run holds its row
for milliseconds. Rows that are locked for longer are reported together with those that were moved.

A run counts as locked, too, if another transaction has locked a row that belongs to it and that the
statement would change or delete: a step, a signal, a mark, its progress or its output. Otherwise
that row would hold up every other run of the batch.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any, Final

import msgspec

from byrote.core.errors import RowLocked
from byrote.core.ports.replies import LOCKED, Archived, Locked, locked_text
from byrote.core.ports.script import RetryPause, arun_script, run_script
from byrote.store.query import Query

KNOWN_MAX = 10_000
PAUSES_S: Final = (0.02, 0.05, 0.1, 0.2, 0.3, 0.33)
"""Pauses before a command is sent again for rows that were locked: a second in all."""

type LockScript = Generator[Query[Any], list[Any], dict[str, Any]]
"""Yields queries, receives their rows, handles RowLocked, and returns the answer for each id."""


def locked(ids: Sequence[str]) -> Query[str]:
    """Which of these runs another transaction has locked."""
    return Query("locked", {"ids": list(ids)}, lambda row: str(row[0]))


def holding(leases: Sequence[Mapping[str, Any]]) -> Query[str]:
    """Which of these leases, by id and token, are held now."""
    sent = [{"id": lease["id"], "token": lease["token"]} for lease in leases]
    return Query(
        "held_leases", {"leases": msgspec.json.encode(sent).decode()}, lambda row: str(row[0])
    )


def archive_around(*, after: str, limit: int) -> Query[Archived]:
    """Move finished runs after a cursor to the archive, except those that are locked."""
    return Query("archive_around", {"after": after, "limit": limit}, lambda row: Archived(*row))


class Detour:
    """Sends statements around locked rows. Remembers which were locked, to check those first."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def around[Entry](
        self,
        entries: Mapping[str, Entry],
        statement: Callable[[Sequence[Entry]], Query[tuple[str, Any]]],
    ) -> LockScript:
        """Send a statement for these; returns its answer by id, and LOCKED for those left out."""
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
            rows = yield from _unless_locked(statement([entries[run_id] for run_id in batch]))
            if rows is not None:
                answers |= dict(rows)
                continue
            found = (yield from _find(batch)) or set(batch if len(batch) == 1 else ())
            passed_by |= found
            left = [run_id for run_id in batch if run_id not in found]
            # Nothing is locked any more, or only by a lock that some updates wait for.
            half = 0 if found else len(left) // 2
            batches += [left[:half], left[half:]]
        # Runs that are never sent again would accumulate; beyond the limit, clear the record.
        self._known = (self._known if len(self._known) < KNOWN_MAX else set()) | passed_by
        return answers | dict.fromkeys(passed_by, LOCKED)


def _find(ids: Sequence[str]) -> Generator[Query[Any], list[Any], set[str]]:
    found = yield from _unless_locked(locked(ids))
    return set(ids if found is None else found)


def _unless_locked(query: Query[Any]) -> Generator[Query[Any], list[Any], list[Any] | None]:
    """Return the rows of a query, or None if it met a row that stays locked."""
    try:
        return (yield query)
    except RowLocked:
        return None


class Moves[Row](msgspec.Struct, frozen=True):
    """The effect of a command on runs: rows of the runs it moved, and ids whose rows are locked."""

    done: list[Row]
    locked: list[str] = []

    @property
    def only(self) -> Row | None:
        """The row of a command on one run, None if it does not apply; raises RowLocked."""
        if self.locked:
            text = " ".join([locked_text(1), f"Nothing was done to run {self.locked[0]}."])
            raise RowLocked(text)
        return self.done[0] if self.done else None


type Verb[Row] = Callable[[Sequence[str]], Query[Row | Locked]]
"""Returns the statement of a command on the runs with these ids."""


type MoveScript[Row] = Generator[Query[Row | Locked] | RetryPause, list[Row | Locked], Moves[Row]]
"""Yields a command's statements and the pauses between them, receives rows, returns the moves."""


def moving[Row](verb: Verb[Row], ids: Sequence[str]) -> MoveScript[Row]:
    """Apply a command to runs; retries those whose rows are locked for a second."""
    moves = _split((yield verb(ids)))
    for pause in PAUSES_S:
        if not moves.locked:
            break
        yield RetryPause(pause)
        moves = _joined(moves, (yield verb(moves.locked)))
    return moves


def move[Row](
    verb: Verb[Row], ids: Sequence[str], ask: Callable[[Query[Row | Locked]], list[Row | Locked]]
) -> Moves[Row]:
    """Run `moving` with an `ask` that waits."""

    def answer(step: Query[Row | Locked] | RetryPause) -> list[Row | Locked]:
        if isinstance(step, RetryPause):
            time.sleep(step.seconds)
            return []
        return ask(step)

    return run_script(moving(verb, ids), answer)


async def amove[Row](
    verb: Verb[Row],
    ids: Sequence[str],
    ask: Callable[[Query[Row | Locked]], Awaitable[list[Row | Locked]]],
) -> Moves[Row]:
    """Run `moving` with an `ask` that is awaited."""

    async def answer(step: Query[Row | Locked] | RetryPause) -> list[Row | Locked]:
        if isinstance(step, RetryPause):
            await asyncio.sleep(step.seconds)
            return []
        return await ask(step)

    return await arun_script(moving(verb, ids), answer)


def moved[Row](rows: Sequence[Row | Locked]) -> list[Row]:
    """The rows of the runs that were moved."""
    return [row for row in rows if not isinstance(row, Locked)]


def _split[Row](rows: Sequence[Row | Locked]) -> Moves[Row]:
    return Moves(moved(rows), [row.id for row in rows if isinstance(row, Locked)])


def _joined[Row](before: Moves[Row], rows: Sequence[Row | Locked]) -> Moves[Row]:
    now = _split(rows)
    return Moves([*before.done, *now.done], now.locked)
