# SPDX-License-Identifier: MIT
"""Answers requests of shadow runs from the record of their originals: one thread, read-only.

The record is the original's ledger, its `once` marks and its artifacts. A live step is passed on to
the worker, as a step of the shadow run. An artifact of an attempt is compared by its hash and not
stored; a difference to the recorded one is kept for the verdict.
"""

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

import psycopg

from byrote.core.artifact import COUNT_MAX, ArtifactEntry, ArtifactRefused
from byrote.core.errors import ByroteError
from byrote.core.json.diff import CHANGES_MAX, Change, Changes, diff
from byrote.core.ports.executor import Ask, Asks
from byrote.core.ports.replies import entry_of
from byrote.core.replay.withholding import WithheldCall
from byrote.core.run import Leased
from byrote.executors.runtime.artifacts import STORE, TERMS
from byrote.executors.runtime.call import WITHHELD
from byrote.executors.runtime.once import MARKED
from byrote.executors.runtime.steps.recorded_ledger import OTHER_ARGS
from byrote.store import queries
from byrote.store.runners.sync import Store
from byrote.worker.asks.artifacts import refusal

STOP_S = 3.0


FLUSH = "flush"
"""An empty request; its answer means that all earlier requests were answered."""


class RecordedAnswers:
    """Answers from the originals' records; `asks` come from shadow runs, `own` go to the worker."""

    def __init__(self, store: Store, asks: Asks, own: Asks, *, artifact_max: int) -> None:
        self._store = store
        self._asks = asks
        self._own = own
        self._artifact_max = artifact_max
        self._made: dict[str, dict[str, str]] = {}
        self._other_args: dict[str, list[Change]] = {}
        self._withheld: dict[str, Counter[tuple[str, str]]] = {}
        self._thread = threading.Thread(target=self._serve, name="byrote-recorded", daemon=True)

    def start(self) -> None:
        """Start the answering thread."""
        self._thread.start()

    def stop(self) -> None:
        """Answer the queued requests and end; waits at most `STOP_S` for the database."""
        self._asks.put(None)
        self._thread.join(STOP_S)

    def artifacts(self, shadow: str, original: str) -> Changes:
        """Differences between artifacts of an ended shadow run and its original; call it once.

        A missing artifact counts only if no recorded step may have made it.
        """
        made = self._made.pop(shadow, {})
        entries = self._store.all(queries.artifacts(original))
        if not made and not entries:
            return Changes([])
        there = _newest(entries)
        stepped = any(s.kind == "step" for s in self._store.all(queries.steps([original])))
        expected = {name: there[name].hash for name in there if name in made or not stepped}
        return diff(expected, made)

    def arguments(self, shadow: str) -> list[Change]:
        """The steps of an ended shadow run whose arguments differ from the record; call it once."""
        return self._other_args.pop(shadow, [])

    def withheld(self, shadow: str) -> list[WithheldCall]:
        """The calls of an ended shadow run that were withheld; call it once.

        Attempts report them without waiting for an answer, so queued reports are read first.
        """
        served = threading.Event()
        run = cast("Leased", None)
        self._asks.put(Ask(run, FLUSH, {}, lambda _ok, _payload: served.set()))
        served.wait()
        calls = self._withheld.pop(shadow, Counter())
        return [WithheldCall(*what, count) for what, count in sorted(calls.items())]

    def _serve(self) -> None:
        while (ask := self._asks.get()) is not None:
            if ask.verb == FLUSH:
                ask.answer(True, None)
                continue
            if ask.verb == "note":
                self._own.put(ask)
                continue
            try:
                reply = True, self._answer(ask)
            except ArtifactRefused as error:
                reply = False, str(error)
            except (psycopg.Error, ByroteError) as error:
                reply = False, f"The record could not be read: {type(error).__name__}"
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                # A hand runs users' code, so it may send anything.
                reply = False, f"{ask.verb!r} was not understood: {error!r}"
            ask.answer(*reply)

    def _answer(self, ask: Ask) -> Any:
        run, original = ask.run, ask.run.shown
        if ask.verb == "load":
            rows = self._store.all(queries.steps([original.id]))
            last = original.attempt
            return [entry_of(row) for row in rows if row.kind != "raised" or row.attempt == last]
        if ask.verb == OTHER_ARGS:
            return self._note_args(run.id, ask.payload)
        if ask.verb == WITHHELD:
            report = ask.payload
            calls = self._withheld.setdefault(run.id, Counter())
            calls[str(report["call"]), str(report["what"])] += int(report["count"])
            return None
        if ask.verb == MARKED:
            return ask.payload["key"] in self._store.all(queries.once_keys(original.id))
        if ask.verb == TERMS:
            return {"max": self._artifact_max, "location": None}
        if ask.verb == STORE:
            return self._compared(run.id, original.id, ask.payload)
        raise ValueError("a replay has no answer to this")

    def _note_args(self, shadow: str, report: Mapping[str, Any]) -> None:
        found = self._other_args.setdefault(shadow, [])
        if len(found) <= CHANGES_MAX:
            path, step = f"/{int(report['sequence'])}/arguments", f"step {report['name']!r}"
            found.append(Change(path, "changed", f"{step} as recorded", f"{step} with others"))

    def _compared(self, shadow: str, original: str, asked: Mapping[str, Any]) -> list[str]:
        name, digest = asked["name"], asked["hash"].hex()
        made = self._made.setdefault(shadow, {})
        if made.get(name, digest) != digest:
            raise refusal("taken", name)
        if len(made) == COUNT_MAX and name not in made:
            raise refusal("full", name)
        made[name] = digest
        there = _newest(self._store.all(queries.artifacts(original))).get(name)
        if there is None:
            run = self._store.first(queries.run(original))
            at = "" if run is None else run.as_of.isoformat()
            return [asked["media_type"], "", at]
        return [there.media_type, there.location, there.at.isoformat()]


def _newest(entries: list[ArtifactEntry]) -> dict[str, ArtifactEntry]:
    """By name, the artifact of the last attempt that stored it; entries are ordered by attempt."""
    return {entry.name: entry for entry in entries}
