# SPDX-License-Identifier: MIT
"""Compares the records of a run outside its row with the log. Pure.

Steps and artifacts have events with their facts; signals and errors have their hashes in the moves
of the run. Every logged record must be stored as it was logged; every stored record must have been
logged, unless the log is older than such hashes or its beginning was dropped.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from byrote.core.log.findings import AttemptWrite, LoggedRecord
from byrote.core.log.kinds import EventKind
from byrote.core.log.record import LogEntry

ERRORS_MAX: Final = 50
"""How many errors a row stores (finish.sql): the first, and the latest of the others."""
HASHED: Final[Mapping[str, int]] = {
    EventKind.ENQUEUED: 3,
    EventKind.SUCCEEDED: 3,
    EventKind.REMEMBERED: 3,
    EventKind.SIGNALLED: 3,
}
"""The first version of a kind's form that has a digest."""

_FAULTS: Final = frozenset(
    {EventKind.RETRIED, EventKind.FAILED, EventKind.CRASHED, EventKind.CANCELLED, EventKind.LOST}
)
_FAULTS_HASHED: Final = 3
_ATTEMPT_LOGGED: Final = 2
"""The version of Claimed from which steps and artifacts of the attempt are logged."""


class Records:
    """The records of one run outside its row, and the log entries on them."""

    def __init__(
        self, written: Iterable[AttemptWrite] = (), recorded: Iterable[LoggedRecord] = ()
    ) -> None:
        self.written = list(written)
        self._logged = {(record.kind, record.entry): record.facts for record in recorded}
        self._errors: list[bytes] = []
        self._complete = True
        """Every error and every signal so far was logged with its hash."""
        self._attempts: set[int] = set()
        """Attempts whose steps and artifacts are logged."""

    def add(self, entry: LogEntry) -> str | None:
        """Add one more move of the run. Returns what is wrong with it, or None."""
        if entry.kind == EventKind.CLAIMED and entry.schema >= _ATTEMPT_LOGGED:
            self._attempts.add(entry.attempt)
        elif entry.kind in _FAULTS and (entry.kind, entry.worker) != (EventKind.CANCELLED, None):
            self._complete &= entry.schema >= _FAULTS_HASHED
            if entry.digest is not None:
                self._errors.append(entry.digest)
        elif entry.kind == EventKind.SIGNALLED:
            self._complete &= entry.schema >= HASHED[EventKind.SIGNALLED]
            if entry.digest is not None:
                name = (entry.data or {}).get("name")
                self._logged[entry.kind, f"{entry.digest.hex()} {name}"] = ""
        if entry.digest is None and entry.schema >= HASHED.get(entry.kind, entry.schema + 1):
            return f"{entry.kind} has no hash"
        return None

    def differences(self, errors: list[bytes], *, whole: bool) -> Iterator[str]:
        """Returns differences of records and log; `whole`: the log has all of the run."""
        stored = {(write.kind, write.entry): write for write in self.written}
        for (kind, entry), facts in self._logged.items():
            write = stored.get((kind, entry))
            if write is None:
                yield f"{_NAMES[kind]} {entry!r} is missing, but the log has it"
            elif kind != EventKind.SIGNALLED and write.facts != facts:
                yield f"{write.what} is {facts} by the log and {write.facts} where it is stored"
        for write in self.written:
            logged = (write.kind, write.entry) in self._logged
            if not logged and self._must_be_logged(write, whole=whole):
                yield f"the log does not have {write.what}"
        yield from self._compare_errors(errors, whole=whole)

    def _must_be_logged(self, write: AttemptWrite, *, whole: bool) -> bool:
        if write.kind == EventKind.SIGNALLED:
            return whole and self._complete
        return write.kind in _NAMES and write.attempt in self._attempts

    def _compare_errors(self, errors: list[bytes], *, whole: bool) -> Iterator[str]:
        logged = self._errors
        if whole and self._complete:
            kept = logged if len(logged) <= ERRORS_MAX else [logged[0], *logged[1 - ERRORS_MAX :]]
            agree = kept == errors
        else:
            # Others may be between the logged ones, and which ones were dropped is unknown.
            rest = iter(errors)
            agree = len(errors) >= ERRORS_MAX or all(digest in rest for digest in logged)
        if not agree:
            yield "its errors differ from those in the log"


_NAMES: Final[Mapping[str, str]] = {
    EventKind.STEP_STORED: "step",
    EventKind.ARTIFACT_STORED: "artifact",
    EventKind.SIGNALLED: "signal",
}
