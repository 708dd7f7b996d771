# SPDX-License-Identifier: MIT
"""Requests of workers to the service: claim, renew, finish, release, register.

A lease is proved by the run's id and the token of its claim. A worker that knows nothing but JSON
sends `{"run", "token", "result"}` or `{"run", "token", "error"}`, and the service decides the
verdict; Byrote's own worker decides it by the same function and sends it as `verdict`.
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
    """A worker's request for runs to attempt."""

    worker: Name
    tasks: Annotated[list[TaskName], msgspec.Meta(min_length=1, max_length=1_000)]
    """Tasks it can execute, as `name@version`; it receives no others."""
    queues: (
        Annotated[list[Name], msgspec.Meta(min_length=1, max_length=100)]
        | Annotated[dict[Name, Quota], msgspec.Meta(min_length=1, max_length=100)]
    ) = msgspec.field(default_factory=lambda: ["default"])
    """Queues in order of preference; or the most runs to claim from each queue."""
    limit: Quota = 1
    """Most runs to claim. With quotas by queue, their sum applies instead."""
    lease_for_s: LeaseFor = LEASE_S
    wait_s: Annotated[float, msgspec.Meta(ge=0, le=WAIT_MAX_S)] = 0.0
    """How long to wait for a run if there is none now."""
    token: Id | None = None
    """Token that proves the leases: 122 random bits; absent: the service draws it.
    A worker that draws it can recover a lost reply with `GET /v1/leases/{token}`."""
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
    """The claimed runs; the list may be empty."""

    leases: list[Lease]
    lease_for_s: float


class Held(Identified, frozen=True, kw_only=True):
    """A run id and a token, which together prove a lease."""

    run: Id
    token: Id


type HeldList = Annotated[list[Held], msgspec.Meta(min_length=1, max_length=BATCH_MAX)]


class Renew(Request, frozen=True, kw_only=True):
    """Leases to renew."""

    leases: HeldList
    lease_for_s: LeaseFor = LEASE_S


class Renewed(Reply, frozen=True, kw_only=True):
    """A lease that holds for another `lease_for_s`."""

    run: str
    cancel: bool
    """The run was cancelled: stop it and finish it as `cancelled`."""


class RenewReply(Reply, frozen=True, kw_only=True):
    """Leases that were renewed, and runs whose leases are lost: stop working on those."""

    renewed: list[Renewed]
    lost: list[str]
    locked: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Neither renewed nor lost: another transaction has locked the row. Renew them again soon."""


class Error(Request, frozen=True, kw_only=True):
    """Why an attempt ended without a result."""

    type: Word = "Error"
    """The class of the error; statistics count errors by it."""
    message: Text = ""
    kind: Word = "raised"
    traceback: Text | None = None
    signal: Word | None = None
    exit_code: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**32)] | None = None
    stderr: Text | None = None
    retry_after: Duration | Seconds | None = None
    """The delay before the next attempt, instead of the run's policy."""
    fatal: bool = False
    """Do not retry: the run becomes a dead letter at once."""
    disrupted: bool = False
    """The attempt's process died, and nothing proves that this task was the cause."""
    attempt: Count = 0
    worker: Annotated[str, msgspec.Meta(max_length=200)] = ""


class Output(Request, frozen=True, kw_only=True):
    """Output of an attempt: the end of each stream, and how many bytes were dropped before it."""

    stdout: Annotated[str, msgspec.Meta(max_length=1_048_576)] = ""
    stderr: Annotated[str, msgspec.Meta(max_length=1_048_576)] = ""
    stdout_dropped: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0
    stderr_dropped: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0


class Snooze(Request, frozen=True, kw_only=True):
    """Postpone the run; does not count as an attempt."""

    after: Duration | Seconds
    wait: Literal["sleep", "event"] | None = None
    event: Word | None = None


type VerdictWord = Literal[
    "succeed", "retry", "fail", "cancel", "snooze", "release", "crashed", "judge"
]


class Verdict(Request, frozen=True, kw_only=True):
    """The verdict of a worker that decides it itself."""

    kind: VerdictWord = "judge"
    """With `judge` the service decides."""
    delay_us: Micros = 0


class Finish(Identified, frozen=True, kw_only=True):
    """How one attempt ended: exactly one of result, error, snooze, cancelled, released."""

    run: Id
    token: Id
    result: Raw | UnsetType = UNSET
    """The value that the task returned: any JSON value, null included."""
    error: Error | None = None
    snooze: Snooze | None = None
    cancelled: bool = False
    released: bool = False
    output: Output | None = None
    usage: Annotated[dict[Word, Measure], msgspec.Meta(max_length=100)] | None = None
    """Numbers by name, each of 64 bits."""
    provenance: Count | None = None
    """The environment that executed it: the number that `POST /v1/provenance` returned."""
    verdict: Verdict | None = None


type Finishes = Finish | Annotated[list[Finish], msgspec.Meta(min_length=1, max_length=BATCH_MAX)]
"""Attempts that ended: one, or a batch."""

type AcceptedAs = Literal[
    "succeeded", "retried", "failed", "cancelled", "snoozed", "released", "crashed", "already"
]


class AcceptedAttempt(Reply, frozen=True, kw_only=True):
    """An attempt whose verdict was stored; `already` if an earlier copy of the request did it."""

    run: str
    accepted_as: AcceptedAs


class FinishReply(Reply, frozen=True, kw_only=True):
    """Attempts whose verdicts were stored, and runs whose leases were lost."""

    accepted: list[AcceptedAttempt]
    lost: list[str]
    locked: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Neither accepted nor lost: another transaction has locked the row. Send them again soon."""


class Release(Request, frozen=True, kw_only=True):
    """Leases to release at once, without charging their runs."""

    leases: HeldList


class Step(Identified, frozen=True, kw_only=True):
    """A step for the ledger of a running run."""

    run: Id
    token: Id
    sequence: Count
    kind: Literal["step", "sleep", "event", "raised", "failed"]
    name: Word
    result: Raw | UnsetType = UNSET
    delay_us: Micros | None = None
    place: Word | None = None
    """Identifies the call in the task, by the worker's own rule."""
    args_hash: Digest | None = None
    """SHA-256 of the arguments, in hexadecimal digits."""


class Steps(Request, frozen=True, kw_only=True):
    """Steps for ledgers."""

    steps: Annotated[list[Step], msgspec.Meta(min_length=1, max_length=500)]


class NotedStep(Reply, frozen=True, kw_only=True):
    """A step as the ledger has it now."""

    run: str
    sequence: int
    open: bool
    result: Raw | UnsetType = UNSET
    """Absent while there is none; null is one."""
    left_us: int | None


class StepsReply(Reply, frozen=True, kw_only=True):
    """Steps as the ledgers have them; a missing one lost its lease, unless its run is locked."""

    steps: list[NotedStep]
    locked: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Runs whose steps were not written: another transaction has locked the row. Try again."""


class Ledgers(Request, frozen=True, kw_only=True):
    """Running runs whose ledgers are requested."""

    leases: Annotated[list[Held], msgspec.Meta(min_length=1, max_length=16)]


class LedgerStep(Reply, frozen=True, kw_only=True):
    """A step in a ledger."""

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
    """All steps of these runs, in order."""

    entries: list[LedgerStep]


class Keep(Identified, frozen=True, kw_only=True):
    """A small file to store with a running run, under its SHA-256."""

    run: Id
    token: Id
    name: Word
    media_type: Word = "application/octet-stream"
    data: Annotated[bytes, msgspec.Meta(max_length=INLINE_MAX)]
    """In base64; up to 1 MiB."""


class Kept(Reply, frozen=True, kw_only=True):
    """The result: `same` if an earlier copy was stored, `taken` if another file has the name."""

    verdict: Literal["stored", "same", "taken", "full", "lost"]
    media_type: str | None = None
    at: datetime | None = None


class Provenance(Request, frozen=True, kw_only=True):
    """An environment of attempts: a document and the SHA-256 of its canonical form."""

    digest: Digest
    doc: Annotated[Raw, msgspec.Meta(extra_json_schema=JSON_OBJECT)]


class ProvenanceReply(Reply, frozen=True, kw_only=True):
    """The number of the environment."""

    id: int


class Register(Request, frozen=True, kw_only=True):
    """Registers a worker."""

    worker: Name
    queues: Annotated[list[Name], msgspec.Meta(min_length=1, max_length=100)]
    tasks: Annotated[list[TaskName], msgspec.Meta(max_length=1_000)]
    pid: Count = 0
    hands: Count = 1
    concurrency: Count = 1
    host: Annotated[str, msgspec.Meta(max_length=200)] = ""
    version: Annotated[str, msgspec.Meta(max_length=100)] = ""
    python: Annotated[str, msgspec.Meta(max_length=100)] = ""
    aliases: Annotated[list[TaskName], msgspec.Meta(max_length=1_000)] = msgspec.field(
        default_factory=list
    )
    """Tasks that the worker leaves to workers that have a task of that name."""


class Heartbeat(Request, frozen=True, kw_only=True):
    """Reports that a worker is alive; `known` false in the reply asks it to register again."""

    idle: bool = False
    stopping: bool = False
    running: Count = 0
    finished: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0


class Known(Reply, frozen=True, kw_only=True):
    """Whether the service knows the worker."""

    known: bool
    contested: list[str] | UnsetType = UNSET
    """Aliases of the worker that are names of tasks of other workers: it must not claim them."""


class Unfinished(Request, frozen=True, kw_only=True):
    """Asks whether a run is due that this worker could claim."""

    queues: Annotated[list[Name], msgspec.Meta(min_length=1, max_length=100)]
    tasks: Annotated[list[TaskName], msgspec.Meta(max_length=1_000)]


class UnfinishedReply(Reply, frozen=True, kw_only=True):
    """Whether such a run is due, and if not, which runs remain."""

    unfinished: bool
    """A run that this worker could claim is due, or a lease in these queues has expired."""
    elsewhere: int = 0
    """Runs in these queues under a lease that has not expired."""
    unknown: int = 0
    """Ready runs in these queues of other tasks."""
    paused: int = 0
    """Runs in paused queues that are ready or due."""
    later: int = 0
    """Waiting runs in these queues that are not due."""


class CancellationHint(Reply, frozen=True, kw_only=True):
    """Whether a run of the worker was cancelled; the next renewal names the run."""

    called: bool


class ArtifactTerms(Reply, frozen=True, kw_only=True):
    """How large an artifact may be."""

    size_max: int
