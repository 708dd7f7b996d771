# SPDX-License-Identifier: MIT
"""Compares what is stored of a run besides its row with what the log tells of it. Pure.

Steps and artifacts have events with their facts; signals and errors have their hashes in the moves
of the run. Whatever the log tells must be stored as it was told; whatever is stored must have been
told, unless the log is older than such hashes or its beginning was dropped.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from byrote.core.log.findings import AttemptWrite, LoggedRecord
from byrote.core.log.kinds import EventKind
from byrote.core.log.record import LogEntry

ERRORS_MAX: Final = 50
"""How many errors a row keeps (finish.sql): the first, and the latest of the others."""
HASHED: Final[Mapping[str, int]] = {
    EventKind.ENQUEUED: 3,
    EventKind.SUCCEEDED: 3,
    EventKind.REMEMBERED: 3,
    EventKind.SIGNALLED: 3,
}
"""From which version of its form on an event of this kind has a digest."""

_FAULTS: Final = frozenset(
    {EventKind.RETRIED, EventKind.FAILED, EventKind.CRASHED, EventKind.CANCELLED, EventKind.LOST}
)
_FAULTS_HASHED: Final = 3
_ATTEMPT_TOLD: Final = 2
"""From which version of Claimed on steps and artifacts of the attempt are told."""


class Records:
    """What is stored of one run besides its row, and what the log tells of that."""

    def __init__(
        self, written: Iterable[AttemptWrite] = (), recorded: Iterable[LoggedRecord] = ()
    ) -> None:
        self.written = list(written)
        self._told = {(record.kind, record.entry): record.facts for record in recorded}
        self._errors: list[bytes] = []
        self._complete = True
        """Every error and every signal so far was told with its hash."""
        self._attempts: set[int] = set()
        """Attempts whose steps and artifacts are told."""

    def hear(self, told: LogEntry) -> str | None:
        """One more move of the run. Returns what is wrong with it."""
        if told.kind == EventKind.CLAIMED and told.schema >= _ATTEMPT_TOLD:
            self._attempts.add(told.attempt)
        elif told.kind in _FAULTS and (told.kind, told.worker) != (EventKind.CANCELLED, None):
            self._complete &= told.schema >= _FAULTS_HASHED
            if told.digest is not None:
                self._errors.append(told.digest)
        elif told.kind == EventKind.SIGNALLED:
            self._complete &= told.schema >= HASHED[EventKind.SIGNALLED]
            if told.digest is not None:
                name = (told.data or {}).get("name")
                self._told[told.kind, f"{told.digest.hex()} {name}"] = ""
        if told.digest is None and told.schema >= HASHED.get(told.kind, told.schema + 1):
            return f"{told.kind} has no hash"
        return None

    def differences(self, errors: list[bytes], *, whole: bool) -> Iterator[str]:
        """What is stored otherwise than it was told; `whole`: the log has all of the run."""
        stored = {(write.kind, write.entry): write for write in self.written}
        for (kind, entry), facts in self._told.items():
            write = stored.get((kind, entry))
            if write is None:
                yield f"{_NAMES[kind]} {entry!r} is not there, but the log tells of it"
            elif kind != EventKind.SIGNALLED and write.facts != facts:
                yield f"{write.what} is {facts} by the log and {write.facts} where it is stored"
        for write in self.written:
            told = (write.kind, write.entry) in self._told
            if not told and self._must_be_told(write, whole=whole):
                yield f"the log does not tell of {write.what}"
        yield from self._compare_errors(errors, whole=whole)

    def _must_be_told(self, write: AttemptWrite, *, whole: bool) -> bool:
        if write.kind == EventKind.SIGNALLED:
            return whole and self._complete
        return write.kind in _NAMES and write.attempt in self._attempts

    def _compare_errors(self, errors: list[bytes], *, whole: bool) -> Iterator[str]:
        told = self._errors
        if whole and self._complete:
            kept = told if len(told) <= ERRORS_MAX else [told[0], *told[1 - ERRORS_MAX :]]
            agree = kept == errors
        else:
            # Others may lie between those that were told, and which ones went is not known.
            rest = iter(errors)
            agree = len(errors) >= ERRORS_MAX or all(digest in rest for digest in told)
        if not agree:
            yield "its errors are not those that the log tells of"


_NAMES: Final[Mapping[str, str]] = {
    EventKind.STEP_STORED: "step",
    EventKind.ARTIFACT_STORED: "artifact",
    EventKind.SIGNALLED: "signal",
}
