# SPDX-License-Identifier: MIT
"""Serves the ledgers and the progress of runs under way, in batches of the asks that arrived.

Hands have no database; their asks come through a queue and are answered by one thread with one
connection, in batches: one at idle, hundreds under load. A step whose lease does not hold is
refused by the store itself, and its attempt receives the error. A step whose row another
transaction has locked is postponed and sent again until the row is free; no other step waits for
it.
"""

from collections.abc import Callable, Mapping, Sequence
from queue import Empty
from typing import Any

import msgspec

from byrote.core.errors import StoreRefused
from byrote.core.ports.executor import Ask, Asks
from byrote.core.ports.replies import RecordedStep, StepReply, entry_of
from byrote.core.ports.store import StepPort
from byrote.core.progress import ProgressReport

LEDGER = frozenset({"load", "note", "progress"})
"""Verbs that are answered here; all others are passed on to the ask server."""
NOTES_MAX = 500
CHARS_MAX = 8 * 1024 * 1024
"""Characters of results after which a batch is full."""
ASIDE_S = 0.1
"""How long to wait before postponed asks are sent again."""
LOADS_MAX = 16
"""Ledgers read by one statement; each may be large."""


class LedgerServer:
    """Reads and writes the ledgers, on its own thread and connection."""

    def __init__(self, ledgers: StepPort, asks: Asks, others: Asks) -> None:
        self._ledgers = ledgers
        self._asks = asks
        self._others = others
        self._closing = False
        self._aside: list[Ask] = []
        self._verbs: Mapping[str, Callable[[Sequence[Ask]], Sequence[Any]]] = {
            "load": self._load,
            "note": self._note,
            "progress": self._progress,
        }

    def run(self) -> None:
        """Serve requests until the sentinel None."""
        while not self._closing:
            batch = self._batch() + self._from_aside()
            loads = [ask for ask in batch if ask.verb == "load"]
            for start in range(0, len(loads), LOADS_MAX):
                self._serve(loads[start : start + LOADS_MAX])
            self._serve([ask for ask in batch if ask.verb == "note"])
            self._serve([ask for ask in batch if ask.verb == "progress"])
        for ask in self._aside:
            ask.answer(
                False, "The run's row is locked by another transaction, and the worker ends."
            )
        self._others.put(None)

    def _from_aside(self) -> list[Ask]:
        aside, self._aside = self._aside, []
        return aside

    def _batch(self) -> list[Ask]:
        batch: list[Ask] = []
        size = 0
        try:
            ask = self._asks.get(timeout=ASIDE_S if self._aside else None)
            while ask is not None:
                if ask.verb in LEDGER:
                    batch.append(ask)
                    result = ask.payload.get("result")
                    size += len(result) if isinstance(result, str) else 0
                else:
                    self._others.put(ask)
                if len(batch) >= NOTES_MAX or size >= CHARS_MAX:
                    return batch
                ask = self._asks.get_nowait()
        except Empty:
            return batch
        self._closing = True
        return batch

    def _serve(self, asks: Sequence[Ask]) -> None:
        if not asks:
            return
        try:
            answers = self._verbs[asks[0].verb](asks)
        except (StoreRefused, msgspec.MsgspecError, KeyError, TypeError, ValueError) as error:
            # A hand runs user code: it may send anything, and that must not end the worker.
            self._serve_apart(asks, error)
            return
        missing = [ask for ask, answer in zip(asks, answers, strict=True) if answer is None]
        locked = self._locked(missing) if missing else set()
        for ask, answer in zip(asks, answers, strict=True):
            if answer is None and ask.run.id in locked:
                self._aside.append(ask)
            else:
                ask.answer(answer is not None, answer)

    def _locked(self, missing: Sequence[Ask]) -> set[str]:
        """Runs among these whose leases hold: a locked row kept them out of the answer."""
        leases = {ask.run.id: {"id": ask.run.id, "token": ask.run.token} for ask in missing}
        return set(self._ledgers.holding(list(leases.values())))

    def _serve_apart(self, asks: Sequence[Ask], error: Exception) -> None:
        """Send each ask alone, so that one that the store refuses does not hold back the others."""
        if len(asks) > 1:
            for ask in asks:
                self._serve([ask])
        else:
            reason = str(error) if isinstance(error, StoreRefused) else repr(error)
            asks[0].answer(False, reason)

    def _load(self, asks: Sequence[Ask]) -> list[list[Any]]:
        ledgers: dict[str, list[RecordedStep]] = {ask.run.id: [] for ask in asks}
        for row in self._ledgers.load([ask.run for ask in asks]):
            ledgers[row.run_id].append(row)
        return [[entry_of(row) for row in ledgers[ask.run.id]] for ask in asks]

    def _note(self, asks: Sequence[Ask]) -> list[list[Any] | None]:
        """Return the stored entry of each ask; None if the lease is lost."""
        rows = [{**ask.payload, "id": ask.run.id, "token": ask.run.token} for ask in asks]
        noted: dict[tuple[str, int], StepReply] = {
            (row.id, row.sequence): row for row in self._ledgers.note(rows)
        }
        found = [noted.get((ask.run.id, ask.payload["sequence"])) for ask in asks]
        return [None if row is None else [row.open, row.result_json, row.left_us] for row in found]

    def _progress(self, asks: Sequence[Ask]) -> list[bool | None]:
        """Write the latest report of each run; None if the lease did not hold."""
        rows: dict[str, dict[str, Any]] = {}
        for ask in asks:
            report = msgspec.structs.asdict(msgspec.convert(ask.payload, ProgressReport))
            rows[ask.run.id] = {**report, "id": ask.run.id, "token": ask.run.token}
        accepted = set(self._ledgers.progress(list(rows.values())))
        return [ask.run.id in accepted or None for ask in asks]
