# SPDX-License-Identifier: MIT
"""What workers say to the service: claim, renew, finish, release, and who they are.

A lease is proved by the run's id and the token of its claim. A worker that knows nothing but JSON
sends `{"run", "token", "result"}` or `{"run", "token", "error"}` and the service decides what
follows; Byrote's own worker decides by the same function and sends its `verdict` along.
"""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from byrote.core.artifact import INLINE_MAX
from byrote.wire.terms import (
    BATCH_MAX,
    JSON_OBJECT,
    LEASE_MAX_S,
    LEASE_S,
    WAIT_MAX_S,
    Count,
    Digest,
    Duration,
    Id,
    Identified,
    Micros,
    Name,
    Reply,
    Request,
    Seconds,
    TaskName,
    Text,
    Word,
)

type LeaseFor = Annotated[float, msgspec.Meta(ge=1, le=LEASE_MAX_S)]
type Measure = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
type Quota = Annotated[int, msgspec.Meta(ge=1, le=BATCH_MAX)]


class Claim(Identified, frozen=True, kw_only=True):
    """Runs a worker wants to attempt."""

    worker: Name
    tasks: Annotated[list[TaskName], msgspec.Meta(min_length=1, max_length=1_000)]
    """Tasks it can execute, as `name@version`; of others it is given none."""
    queues: (
        Annotated[list[Name], msgspec.Meta(min_length=1, max_length=100)]
        | Annotated[dict[Name, Quota], msgspec.Meta(min_length=1, max_length=100)]
    ) = msgspec.field(default_factory=lambda: ["default"])
    """In this order; or, of each queue at most so many."""
    limit: Quota = 1
    """Runs in all. With quotas by queue, their sum counts, not this."""
    lease_for_s: LeaseFor = LEASE_S
    wait_s: Annotated[float, msgspec.Meta(ge=0, le=WAIT_MAX_S)] = 0.0
    """How long to wait for a run if there is none now."""
    token: Id | None = None
    """What proves the leases: 122 random bits; absent: the service draws it.
    With one of its own, a worker whose answer was lost can ask `GET /v1/leases/{token}`."""
    floors: Annotated[dict[Name, Measure], msgspec.Meta(max_length=100)] | None = None
    """Ranks to start from, by queue; see the worker's watermark."""


class Lease(Reply, frozen=True, kw_only=True):
    """The right to attempt a run, until `lease_for_s` after the claim was sent."""

    run: str
    token: str
    queue: str
    task: str
    version: int
    spec: Annotated[Raw, msgspec.Meta(extra_json_schema=JSON_OBJECT)]
    """`{"task", "version", "args", "kwargs"}`, verbatim."""
    spec_hash: str
    attempt: int
    """1 for the first claim of the run, and rising."""
    charged: int
    """Attempts so far that count against `max_attempts`."""
    losses: int
    max_attempts: int
    timeout_ms: int | None
    retry: Raw | None
    labels: Raw | None
    traceparent: str | None
    rank: int
    age_us: int
    """How old the run was when it was claimed."""
    as_of_us: int


class Leases(Reply, frozen=True, kw_only=True):
    """What was claimed; none is an answer, too."""

    leases: list[Lease]
    lease_for_s: float


class Held(Identified, frozen=True, kw_only=True):
    """What proves a lease."""

    run: Id
    token: Id


type HeldList = Annotated[list[Held], msgspec.Meta(min_length=1, max_length=BATCH_MAX)]


class Renew(Request, frozen=True, kw_only=True):
    """Leases to be held for longer."""

    leases: HeldList
    lease_for_s: LeaseFor = LEASE_S


class Renewed(Reply, frozen=True, kw_only=True):
    """A lease that holds for another `lease_for_s`."""

    run: str
    cancel: bool
    """Somebody wants the run to stop: end it and finish it as `cancelled`."""


class RenewReply(Reply, frozen=True, kw_only=True):
    """Leases that hold, and runs that are lost: stop working on them."""

    renewed: list[Renewed]
    lost: list[str]
    locked: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Neither renewed nor lost: another transaction has locked the row. Renew them again soon."""


class Error(Request, frozen=True, kw_only=True):
    """Why an attempt ended without a result."""

    type: Word = "Error"
    """The class of the error; statistics are kept by it."""
    message: Text = ""
    kind: Word = "raised"
    traceback: Text | None = None
    signal: Word | None = None
    exit_code: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**32)] | None = None
    stderr: Text | None = None
    retry_after: Duration | Seconds | None = None
    """When to try again, instead of what the run's policy says."""
    fatal: bool = False
    """No retry will help: straight to the dead letters."""
    disrupted: bool = False
    """The attempt's process went down, and nothing shows that this task was the cause."""
    attempt: Count = 0
    worker: Annotated[str, msgspec.Meta(max_length=200)] = ""


class Output(Request, frozen=True, kw_only=True):
    """What an attempt printed: the end of each stream, and how many bytes came before it."""

    stdout: Annotated[str, msgspec.Meta(max_length=1_048_576)] = ""
    stderr: Annotated[str, msgspec.Meta(max_length=1_048_576)] = ""
    stdout_dropped: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0
    stderr_dropped: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0


class Snooze(Request, frozen=True, kw_only=True):
    """Step aside without cost."""

    after: Duration | Seconds
    wait: Literal["sleep", "event"] | None = None
    event: Word | None = None


type VerdictWord = Literal[
    "succeed", "retry", "fail", "cancel", "snooze", "release", "crashed", "judge"
]


class Verdict(Request, frozen=True, kw_only=True):
    """What follows, decided by a worker that judges for itself."""

    kind: VerdictWord = "judge"
    """`judge` leaves it to the service."""
    delay_us: Micros = 0


class Finish(Identified, frozen=True, kw_only=True):
    """How one attempt ended: exactly one of result, error, snooze, cancelled, released."""

    run: Id
    token: Id
    result: Raw | UnsetType = UNSET
    """What the task returned: any JSON value, null included."""
    error: Error | None = None
    snooze: Snooze | None = None
    cancelled: bool = False
    released: bool = False
    output: Output | None = None
    usage: Annotated[dict[Word, Measure], msgspec.Meta(max_length=100)] | None = None
    """Numbers by name, each of 64 bits."""
    provenance: Count | None = None
    """What executed it, by the number that `POST /v1/provenance` gave."""
    verdict: Verdict | None = None


type Finishes = Finish | Annotated[list[Finish], msgspec.Meta(min_length=1, max_length=BATCH_MAX)]
"""Attempts that ended: one, or a batch."""

type AcceptedAs = Literal[
    "succeeded", "retried", "failed", "cancelled", "snoozed", "released", "crashed", "already"
]


class AcceptedAttempt(Reply, frozen=True, kw_only=True):
    """An attempt whose end was accepted; `already` when an earlier copy of this word was."""

    run: str
    heard: AcceptedAs


class FinishReply(Reply, frozen=True, kw_only=True):
    """What was accepted, and what came too late: those leases were lost."""

    accepted: list[AcceptedAttempt]
    lost: list[str]
    locked: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Neither accepted nor lost: another transaction has locked the row. Send them again soon."""


class Release(Request, frozen=True, kw_only=True):
    """Leases to be given back at once, at no cost to their runs."""

    leases: HeldList


class Step(Identified, frozen=True, kw_only=True):
    """A line for the ledger of a run under way."""

    run: Id
    token: Id
    sequence: Count
    kind: Literal["step", "sleep", "event", "raised"]
    name: Word
    result: Raw | UnsetType = UNSET
    delay_us: Micros | None = None
    place: Word | None = None
    """Which call of the task it is, by a rule of the worker's own."""
    args_hash: Digest | None = None
    """SHA-256 of the arguments, in hexadecimal digits."""


class Steps(Request, frozen=True, kw_only=True):
    """Lines for ledgers."""

    steps: Annotated[list[Step], msgspec.Meta(min_length=1, max_length=500)]


class NotedStep(Reply, frozen=True, kw_only=True):
    """A line as the ledger has it now."""

    run: str
    sequence: int
    open: bool
    result: Raw | UnsetType = UNSET
    """Absent while there is none; null is one."""
    left_us: int | None


class StepsReply(Reply, frozen=True, kw_only=True):
    """What the ledgers have now; a missing line lost its lease, unless its run is locked."""

    steps: list[NotedStep]
    locked: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Runs whose lines were not written: another transaction has locked the row. Try again."""


class Ledgers(Request, frozen=True, kw_only=True):
    """Runs under way whose ledgers are wanted."""

    leases: Annotated[list[Held], msgspec.Meta(min_length=1, max_length=16)]


class LedgerLine(Reply, frozen=True, kw_only=True):
    """A line of a ledger."""

    run: str
    sequence: int
    kind: str
    name: str
    open: bool
    result: Raw | UnsetType = UNSET
    """Absent while there is none; null is one."""
    place: str | None = None
    args_hash: str | None = None


class LedgersReply(Reply, frozen=True, kw_only=True):
    """All lines of these runs, in order."""

    lines: list[LedgerLine]


class Keep(Identified, frozen=True, kw_only=True):
    """A small file to be kept with a run under way; its SHA-256 is what it is stored by."""

    run: Id
    token: Id
    name: Word
    media_type: Word = "application/octet-stream"
    data: Annotated[bytes, msgspec.Meta(max_length=INLINE_MAX)]
    """In base64; up to 1 MiB."""


class Kept(Reply, frozen=True, kw_only=True):
    """What became of it: `same` when an earlier copy was stored, `taken` when another was."""

    verdict: Literal["stored", "same", "taken", "full", "lost"]
    media_type: str | None = None
    at: datetime | None = None


class Provenance(Request, frozen=True, kw_only=True):
    """What executes attempts: a document and the SHA-256 of its canonical form."""

    digest: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]
    doc: Annotated[Raw, msgspec.Meta(extra_json_schema=JSON_OBJECT)]


class ProvenanceReply(Reply, frozen=True, kw_only=True):
    """The number to name it by."""

    id: int


class Register(Request, frozen=True, kw_only=True):
    """A worker introduces itself."""

    worker: Name
    queues: Annotated[list[Name], msgspec.Meta(min_length=1, max_length=100)]
    tasks: Annotated[list[TaskName], msgspec.Meta(max_length=1_000)]
    pid: Count = 0
    hands: Count = 1
    concurrency: Count = 1
    host: Annotated[str, msgspec.Meta(max_length=200)] = ""
    version: Annotated[str, msgspec.Meta(max_length=100)] = ""
    python: Annotated[str, msgspec.Meta(max_length=100)] = ""


class Heartbeat(Request, frozen=True, kw_only=True):
    """A worker lives; `known` false in the answer asks it to introduce itself again."""

    idle: bool = False
    stopping: bool = False
    running: Count = 0
    finished: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0


class Known(Reply, frozen=True, kw_only=True):
    """Whether the service knows the worker."""

    known: bool


class Unfinished(Request, frozen=True, kw_only=True):
    """Asks whether anything is due that this worker could claim."""

    queues: Annotated[list[Name], msgspec.Meta(min_length=1, max_length=100)]
    tasks: Annotated[list[TaskName], msgspec.Meta(max_length=1_000)]


class UnfinishedReply(Reply, frozen=True, kw_only=True):
    """Whether something is, and what is left besides when nothing is."""

    unfinished: bool
    """A run that this worker could claim is due, or a lease in these queues has expired."""
    elsewhere: int = 0
    """Runs in these queues under a lease that has not expired."""
    unknown: int = 0
    """Ready runs in these queues of other tasks."""


class Called(Reply, frozen=True, kw_only=True):
    """Whether some run of the worker is not wanted any more: the next renewal says which."""

    called: bool


class ArtifactTerms(Reply, frozen=True, kw_only=True):
    """How large a file of a run may be here."""

    size_max: int
