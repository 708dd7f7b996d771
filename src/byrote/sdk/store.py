# SPDX-License-Identifier: MIT
"""The store of a worker that has a service: the same verbs as `byrote.store.worker`, over HTTP.

Every part has its own connection. All calls are safe to repeat: a finish by its lease's token, a
claim by asking for its token when its answer was lost. They are repeated for as long as the worker
lives. The service does the housekeeping.
"""

import contextlib
import select
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2

from byrote.core.errors import BadOption, ServiceUnreachable, StoreRefused, ValueRefused
from byrote.core.ports.replies import ArtifactReply, RecordedStep, Remainder, StepReply
from byrote.core.ports.store import ClaimRequest, MaintenancePort, PartContext
from byrote.core.run import Leased
from byrote.core.verdict import Judged
from byrote.sdk.artifact_upload import discard
from byrote.sdk.calls import producer
from byrote.sdk.calls import worker as leasing
from byrote.sdk.cancellation_listener import CancellationListener
from byrote.sdk.transport.address import PLAIN, ServiceAddress, answer_of, lost_of
from byrote.sdk.transport.request import (
    LostResponse,
    SendRequest,
    ServiceCall,
    ServiceResponse,
    pause_before,
)
from byrote.system.wake import clear
from byrote.wire.problems import PASSING, Refused, error_of

ANSWER_S = 15.0
"""How long an answer may take, besides the requested wait."""
WAIT_MAX_S = 50.0
WAIT_SHARE = 0.25
"""The share of a lease that a claim may wait for."""
DOUBT_S = 3.0
"""How long after its time a claim whose answer was lost may still be served."""
SENDS_MAX = 5
"""How often an interrupted upload is started."""
DENIED = frozenset({"unauthorized", "forbidden"})
"""Refusals of a token that worked before: it may be renewed or granted again."""
OF_VALUES = frozenset({"too_large", "invalid"})
"""Refusals of a value that was sent."""
ROLES = frozenset({"work", "admin"})


class RequestInterrupted(Exception):
    """The connection broke under a request: whether it took effect is unknown."""


class ServiceConnection:
    """One part's connection to the service."""

    def __init__(self, address: ServiceAddress, part: PartContext, verify: Any) -> None:
        self._address = address
        self._part = part
        self._verify = verify
        self._http: httpx2.Client | None = None
        self._troubled = False
        self._tries: dict[str, int] = {}
        """Requests in a row that failed, by method."""

    def run[T](self, call: ServiceCall[T]) -> T:
        """Send until there is an answer, or the worker has stopped."""
        while True:
            try:
                return self.ask(call)
            except RequestInterrupted:
                continue

    def ask[T](self, call: ServiceCall[T]) -> T:
        """Send; raises Interrupted if the request may have arrived and the answer was lost."""
        while True:
            response = self._send(call)
            if isinstance(response, ServiceResponse) and response.status < 300:
                self._well(call.method)
                return call.read(response.body)
            # By method: a service whose database is read-only answers which runs a claim leased.
            tries = self._tries[call.method] = self._tries.get(call.method, 0) + 1
            self._complain(response, tries)
            if isinstance(response, LostResponse) and response.sent:
                raise RequestInterrupted
            if isinstance(response, ServiceResponse) and response.status >= 500:
                # It, or something before it, broke under the request.
                raise RequestInterrupted

    def once[T](self, call: ServiceCall[T]) -> T:
        """Send once, and raise any error."""
        response = self._send(call)
        if isinstance(response, LostResponse):
            raise ServiceUnreachable(
                f"The service at {self._address.redacted} did not answer: {response.why}"
            )
        if response.status >= 300:
            raise error_of(response.status, response.body)
        return call.read(response.body)

    def _send(self, call: ServiceCall[Any]) -> ServiceResponse | LostResponse:
        if self._http is None:
            self._http = httpx2.Client(**self._address.options(self._verify))
        request = self._address.request(
            self._http, SendRequest(call, PLAIN, ANSWER_S + call.wait_s)
        )
        try:
            return answer_of(self._http.send(request))
        except httpx2.TransportError as error:
            return lost_of(error)

    def _complain(self, response: ServiceResponse | LostResponse, tries: int) -> None:
        """Report the error and wait a while; raises when waiting will not help."""
        if isinstance(response, LostResponse):
            why = response.why
        else:
            refused = error_of(response.status, response.body)
            denied = refused.code in DENIED and not self._part.impatient()
            if refused.code not in PASSING and not denied:
                error_type = ValueRefused if refused.code in OF_VALUES else StoreRefused
                raise error_type(f"The service refused: {_refusal(refused)}") from refused
            why = str(refused)
        self._troubled = True
        self._part.notice(self._part.purpose, why)
        if self._part.stopped(pause_before(tries, response, self._part.jitter)):
            raise self._unreachable(why)

    def _unreachable(self, why: str) -> ServiceUnreachable:
        return ServiceUnreachable(f"The service at {self._address.redacted} did not answer: {why}")

    def _well(self, method: str) -> None:
        if not self._troubled:
            return
        self._tries.pop(method, None)
        if all(tries == 1 for tries in self._tries.values()):
            self._troubled = False
            self._part.notice(self._part.purpose, None)

    def drop(self) -> None:
        """Close the connection; the next request opens another."""
        if self._http is not None:
            self._http.close()
        self._http = None


def _refusal(refused: Refused) -> str:
    where = "; ".join(f"{error.path}: {error.message}" for error in refused.errors[:3])
    return f"{refused} {where}".strip()[:300]


class ServiceStore:
    """A worker's store behind a service."""

    def __init__(self, address: ServiceAddress, *, verify: Any = True) -> None:
        self._address = address
        self._verify = verify

    def check(self) -> str:
        """Raise unless the service answers and lets this token work; returns its address."""
        part = PartContext("check", lambda _s: True, lambda _what, _error: None, lambda: 0.0)
        wire = self._wire(part)
        try:
            who = wire.once(producer.whoami())
        finally:
            wire.drop()
        if who.role not in ROLES:
            raise BadOption(
                f"The token {who.name!r} has the role {who.role!r}; a worker needs `work`."
            )
        return f"service {self._address.redacted}"

    def leases(
        self,
        part: PartContext,
        *,
        on_cancel: Callable[[], None],
        on_return: Callable[[], None],  # noqa: ARG002 -- the service does not notify of it.
    ) -> "HttpLeases":
        """The claimer's port, with a second connection that waits for cancellations."""
        cancellations = CancellationListener(part, self._wire, on_cancel)
        return HttpLeases(self._wire(part), cancellations)

    def verdicts(self, part: PartContext) -> "HttpFinish":
        """The recorder's port."""
        return HttpFinish(self._wire(part))

    def registry(self, part: PartContext) -> "HttpRegistry":
        """The lease keeper's port."""
        return HttpRegistry(self._wire(part))

    def ledgers(self, part: PartContext) -> "HttpSteps":
        """The ledger server's port."""
        return HttpSteps(self._wire(part))

    def artifact_rows(self, part: PartContext) -> "HttpArtifacts":
        """The port for rows of artifacts."""
        return HttpArtifacts(self._wire(part))

    def duties(self, part: PartContext) -> MaintenancePort | None:  # noqa: ARG002 -- there are none.
        """None: the service does its own housekeeping."""
        return None

    def _wire(self, part: PartContext) -> ServiceConnection:
        return ServiceConnection(self._address, part, self._verify)


class _OnWire:
    """A part with its own connection."""

    def __init__(self, wire: ServiceConnection) -> None:
        self._wire = wire

    def close(self) -> None:
        """Close the connection; the next verb opens another."""
        self._wire.drop()


class HttpLeases(_OnWire):
    """Claims; when there is nothing to claim, the next claim waits at the service.

    So the worker learns of work at once without asking often. A claim that waits is not called
    back when room is made: it answers as soon as there is work, whatever room it was sent for.

    A claim whose answer was lost may still be waiting at the service when the worker asks for the
    result of it. So its token is remembered, asked about once more when it can wait no longer, and
    what it had leased by then is given back. Few are remembered: the next claim is only sent after
    the connection answers again, and each is settled a few seconds after its claim was lost.
    """

    listening = True

    def __init__(self, wire: ServiceConnection, cancellations: CancellationListener) -> None:
        super().__init__(wire)
        self._patience_s = 0.0
        self._doubts: list[tuple[float, ClaimRequest]] = []
        self._cancellations = cancellations

    def close(self) -> None:
        """Close the connection; the next verb opens another."""
        self._cancellations.close()
        super().close()

    def claim(self, wanted: ClaimRequest) -> list[Leased] | None:
        """Lease the requested runs; None if the answer was lost and nothing was leased."""
        self._cancellations.open(wanted.worker)
        # A lease counts from before the claim was sent: a long wait would use it up.
        patience = min(self._patience_s, wanted.lease_for.total_seconds() * WAIT_SHARE)
        self._patience_s = 0.0
        if self._doubts:
            self._resolve_lost_claims(wanted.claimed_at)
        try:
            return self._wire.ask(leasing.claim(wanted, wait_s=patience))
        except RequestInterrupted:
            found = self._wire.run(leasing.claimed(wanted))
            if not found:
                self._doubts.append((wanted.claimed_at + patience + DOUBT_S, wanted))
            return found or None

    def _resolve_lost_claims(self, now: float) -> None:
        due = [doubt for doubt in self._doubts if doubt[0] <= now]
        for doubt in due:
            found = self._wire.run(leasing.claimed(doubt[1]))
            if found:
                self._wire.run(leasing.release(found))
            self._doubts.remove(doubt)

    def idle(self, *, worker: str, idle: bool) -> None:
        """Do nothing: a waiting claim implies it."""

    def rest(self, wake: int, seconds: float, *, for_room: bool = False) -> None:
        """Wait for room here; the next claim waits for work at the service."""
        if not for_room:
            self._patience_s = min(seconds, WAIT_MAX_S)
            seconds = 0
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        if poll.poll(seconds * 1000):
            clear(wake)

    def unfinished(self, *, queues: Sequence[str], tasks: Sequence[str]) -> Remainder:
        """Return the number of runs left in these queues."""
        return self._wire.run(leasing.unfinished(queues=queues, tasks=tasks))


class HttpFinish(_OnWire):
    """Settles attempts."""

    def finish(self, judged: Sequence[Judged]) -> dict[str, str]:
        """The accepted ids and their code letters, or LOCKED; a missing one was lost."""
        for run, _, _ in judged:
            found = run.provenance
            if found is not None and found.id is None:
                found.id = self._wire.run(leasing.number(found.digest, found.text))
        return self._wire.run(leasing.finish(judged))


class HttpRegistry(_OnWire):
    """Renews leases, and keeps a worker's row in the registry."""

    def register(self, description: Mapping[str, Any]) -> Sequence[str]:
        """Announce a worker; returns its aliases that are tasks of other live workers.

        Workers with one token may share an id.
        """
        return self._wire.run(leasing.register(description))

    def heartbeat(self, worker: str, load: Mapping[str, Any]) -> Sequence[str] | None:
        """Send a heartbeat; returns what `register` does, None if the worker is unknown."""
        return self._wire.run(leasing.heartbeat(worker, load))

    def deregister(self, worker: str) -> None:
        """Take a worker off the list."""
        self._wire.run(leasing.deregister(worker))

    def renew(self, leases: Sequence[Leased], *, lease_for: timedelta) -> dict[str, bool | str]:
        """Extend leases: ids still held and whether cancellation was requested, or LOCKED."""
        return self._wire.run(leasing.renew(leases, lease_for=lease_for))


class HttpSteps(_OnWire):
    """Reads and writes ledgers and progress."""

    def __init__(self, wire: ServiceConnection) -> None:
        super().__init__(wire)
        self._locked: list[str] = []
        """Runs whose rows were locked when the service last answered."""

    def load(self, leases: Sequence[Leased]) -> list[RecordedStep]:
        """The ledgers of these runs, each in order."""
        return self._wire.run(leasing.ledgers(leases))

    def note(self, steps: Sequence[Mapping[str, Any]]) -> list[StepReply]:
        """Write steps under their leases; a missing one was lost, unless it is `holding`."""
        noted, self._locked = self._wire.run(leasing.note(steps))
        return noted

    def progress(self, reports: Sequence[Mapping[str, Any]]) -> list[str]:
        """Write the progress of attempts; a missing one was lost, unless it is `holding`."""
        accepted, self._locked = self._wire.run(leasing.progress(reports))
        return accepted

    def holding(self, leases: Sequence[Mapping[str, Any]]) -> list[str]:
        """Which of these leases were locked in the last answer."""
        return [lease["id"] for lease in leases if lease["id"] in self._locked]


class HttpArtifacts(_OnWire):
    """Stores artifacts at the service, which knows their location."""

    def prefix(self) -> str:
        """Refused: storage is not shared here."""
        raise _stored_remotely()

    def limit(self) -> int:
        """Bytes an artifact may have at the service."""
        return self._wire.run(leasing.artifact_limit())

    def keep(self, lease: Leased, artifact: Mapping[str, Any]) -> ArtifactReply:
        """Store an artifact under a lease: `data` if given, else the file at `location`."""
        if artifact["data"] is not None:
            return self._wire.run(leasing.keep(lease, artifact))
        try:
            return self._send(lease, artifact)
        finally:
            discard(Path(artifact["location"]))

    def _send(self, lease: Leased, artifact: Mapping[str, Any]) -> ArtifactReply:
        for _ in range(SENDS_MAX):
            with contextlib.suppress(RequestInterrupted):
                return self._wire.ask(leasing.send(lease, artifact))
        raise StoreRefused(f"The file could not be sent: {SENDS_MAX} tries broke off.")

    def referred(self, hashes: Sequence[str]) -> list[str]:  # noqa: ARG002 -- refused.
        """Refused: the service stores the contents and cleans them up."""
        raise _stored_remotely()


def _stored_remotely() -> StoreRefused:
    return StoreRefused("The service stores artifacts itself; its workers have no store.")
