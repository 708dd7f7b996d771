# SPDX-License-Identifier: MIT
"""Records that hooks of an app receive, and how a supervisor sends them to a hand."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from byrote.core.json.seed import SEED_LABEL
from byrote.core.outcome import Crashed, Failed, Fault, Outcome
from byrote.core.run import Leased
from byrote.core.spec import Spec
from byrote.core.state import Status

type OnEnqueue = Callable[[Spec], Spec | None]
"""Returns the spec to enqueue instead, or None for the same one; raises to refuse it."""

ENDED: Final[Mapping[str, Status]] = {
    "S": Status.SUCCESSFUL,
    "F": Status.FAILED,
    "C": Status.CANCELLED,
}
"""The final status by the letter of the stored verdict."""


class EndedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that ended for good, as it was stored; `on_end` hooks receive it."""

    run_id: str
    """The id of the run."""
    task: str
    """The name of its task."""
    version: int
    """The version of its task."""
    queue: str
    """The queue it was in."""
    status: Status
    """SUCCESSFUL, FAILED or CANCELLED."""
    attempts: int
    """The number of the last attempt."""
    labels: Mapping[str, str]
    """The labels it was enqueued with."""
    traceparent: str | None
    """The W3C trace context it was enqueued with."""
    fault: Fault | None
    """Why the last attempt failed; None unless the run FAILED."""


class HookWants(msgspec.Struct, frozen=True):
    """Which messages the hooks of an app need from its supervisor."""

    failures: bool = False
    ends: bool = False
    worker_start: bool = False
    worker_stop: bool = False

    @property
    def reports(self) -> bool:
        """Whether stored verdicts are to be reported."""
        return self.failures or self.ends


class StoredAttempt(msgspec.Struct, frozen=True, array_like=True):
    """An attempt whose verdict was stored, on its way to the hooks of a hand."""

    run_id: str
    task: str
    version: int
    queue: str
    attempt: int
    verdict: str
    """The letter of the stored verdict."""
    labels_json: str | None
    traceparent: str | None
    fault: Fault | None
    unseen: bool
    """Whether no hook has received the failure: its process was killed, or was a command."""

    @property
    def ended(self) -> EndedRun | None:
        """The run, if this attempt ended it."""
        status = ENDED.get(self.verdict)
        if status is None:
            return None
        return EndedRun(
            run_id=self.run_id,
            task=self.task,
            version=self.version,
            queue=self.queue,
            status=status,
            attempts=self.attempt,
            labels=_labels(self.labels_json),
            traceparent=self.traceparent,
            fault=self.fault if status is Status.FAILED else None,
        )


def stored_attempt(
    run: Leased, outcome: Outcome, verdict: str | None, wants: HookWants
) -> StoredAttempt | None:
    """Return the report of a stored attempt; None if no hook wants it, or the lease was lost."""
    if verdict is None:
        return None
    fault = outcome.fault if isinstance(outcome, Failed | Crashed) else None
    unseen = fault is not None and not run.hand
    if not ((wants.ends and verdict in ENDED) or (wants.failures and unseen)):
        return None
    return StoredAttempt(
        run.id,
        run.task,
        run.version,
        run.queue,
        run.attempt,
        verdict,
        run.labels_json,
        run.traceparent,
        fault,
        unseen,
    )


def _labels(text: str | None) -> dict[str, str]:
    labels: dict[str, str] = msgspec.json.decode(text) if text else {}
    labels.pop(SEED_LABEL, None)
    return labels
