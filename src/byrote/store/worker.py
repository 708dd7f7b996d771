# SPDX-License-Identifier: MIT
"""The store of a worker with a connection to the database: one for each of its parts."""

import select
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import psycopg

from byrote.core.outcome import Succeeded
from byrote.core.ports.replies import (
    LOCKED,
    ArtifactReply,
    RecordedStep,
    Remainder,
    StepReply,
    UnknownTaskRef,
)
from byrote.core.ports.script import run_script
from byrote.core.ports.store import ClaimRequest, PartContext
from byrote.core.run import Leased
from byrote.core.verdict import LETTERS, Judged, is_bare, row_of, usage_of
from byrote.store import locks, migrate, queries, rights
from byrote.store.connect import PLAN_GUARDS, DatabaseAddress, described, subscription
from byrote.store.locks import Detour
from byrote.store.maintenance import MaintenanceStore
from byrote.store.query import Query
from byrote.store.registry import RegistryStore
from byrote.store.runners.link import OnConnection, WorkerConnection
from byrote.store.runners.sync import Interrupted, fetch, refused, unreachable
from byrote.store.writable import check_writable
from byrote.system.wake import clear


class PostgresStore:
    """A worker's store on PostgreSQL.

    Claims that are not durable do not wait for the disk: a server crash may lease a run twice.
    """

    def __init__(
        self,
        address: DatabaseAddress,
        *,
        listen: bool = True,
        durable_claims: bool = True,
        keep_events: timedelta = timedelta(days=30),
        holder: str | None = None,
    ) -> None:
        self._address = address
        self._keep_events = keep_events
        self._holder = holder
        """Identifies this start of the worker: no other process may use its id meanwhile."""
        self._listen = listen and not address.pooled
        self._claims = () if durable_claims else ("synchronous_commit=off",)
        self._watch = threading.Event()
        """Set when a client has begun to watch a run of this worker."""

    def check(self) -> str:
        """Raise unless the database answers, has our schema, and allows this login to work.

        Returns the database's host, name and role.
        """
        try:
            with self._address.open("worker") as connection:
                schema = self._address.schema
                migrate.check(connection, schema)
                check_writable(connection, self._address)
                rights.demand(connection, "byrote_worker", rights.TO_WORK, schema)
                return described(connection)
        except psycopg.errors.InsufficientPrivilege as error:
            raise refused(error, self._address) from error
        except psycopg.OperationalError as error:
            raise unreachable(self._address, error) from error

    def leases(
        self, part: PartContext, *, on_cancel: Callable[[], None], on_return: Callable[[], None]
    ) -> "LeaseStore":
        """Return the store of the claimer."""
        link = self._link(part, *self._claims)
        handlers = {"byrote_cancel": on_cancel, "byrote_watch": self._watch.set}
        return LeaseStore(link, listen=self._listen, handlers=handlers, on_return=on_return)

    def verdicts(self, part: PartContext) -> "FinishStore":
        """Return the store of the recorder."""
        return FinishStore(self._link(part))

    def registry(self, part: PartContext) -> RegistryStore:
        """Return the store of the lease keeper."""
        return RegistryStore(self._link(part), holder=self._holder)

    def ledgers(self, part: PartContext) -> "StepStore":
        """Return the store of the ledger server."""
        return StepStore(self._link(part))

    def artifact_rows(self, part: PartContext) -> "ArtifactRows":
        """Return the store of artifacts."""
        return ArtifactRows(self._link(part))

    def duties(self, part: PartContext) -> MaintenanceStore:
        """Return the store of maintenance."""
        # A crash of the server may undo the last duties, as a whole: they are simply repeated.
        # A duty that the role lacks the right for, or that meets a lock, must not delay the others
        # and the runs that wait for them, so the connection does not insist.
        link = self._link(part, "synchronous_commit=off", "lock_timeout=1s", insists=False)
        return MaintenanceStore(link, self._watch, keep_events=self._keep_events)

    def unknown_tasks(self, part: PartContext) -> "DiscoveryStore":
        """Return the store of discovery."""
        return DiscoveryStore(self._link(part))

    def _link(self, part: PartContext, *settings: str, insists: bool = True) -> WorkerConnection:
        return WorkerConnection(
            self._address,
            part.purpose,
            *PLAN_GUARDS,
            *settings,
            jitter=part.jitter,
            stopped=part.stopped,
            notice=part.notice,
            impatient=part.impatient,
            insists=insists,
        )


class LeaseStore(OnConnection):
    """Claims runs, and receives the database's notifications."""

    def __init__(
        self,
        link: WorkerConnection,
        *,
        listen: bool,
        handlers: Mapping[str, Callable[[], None]],
        on_return: Callable[[], None],
    ) -> None:
        super().__init__(link)
        self._handlers = handlers
        self._on_return = on_return
        self._channels: Mapping[str, str] = {}
        """What each channel is for, by its name in this schema."""
        self._worker = ""
        self._fresh = False
        """Whether work was notified during a claim, which may have missed it."""
        self.listening = False
        if listen:
            link.on_open = self._subscribe

    def claim(self, request: ClaimRequest) -> list[Leased] | None:
        """Lease the requested runs; None if the answer was lost and the claim had no effect."""
        self._worker = request.worker
        self._fresh = False
        try:
            return self._link.ask(queries.claim(**request._asdict()))
        except Interrupted:
            lost = queries.claimed(
                worker=request.worker,
                token=request.token,
                deadline=request.deadline,
                claimed_at=request.claimed_at,
            )
            # If it had no effect, notifications meanwhile were lost with the connection.
            return self._link.certain(lost) or None

    def idle(self, *, worker: str, idle: bool) -> None:
        """Set whether the worker wants to be notified of work."""
        self._link.run(queries.idle(worker=worker, idle=idle))

    def unfinished(self, *, queues: Sequence[str], tasks: Sequence[str]) -> Remainder:
        """Count the runs left in these queues."""
        return self._link.run(queries.unfinished(queues=queues, tasks=tasks))[0]

    def rest(self, wake: int, seconds: float, *, for_room: bool = False) -> None:  # noqa: ARG002 -- receiving a notification costs nothing.
        """Wait until woken or notified, for up to `seconds`."""
        connection = self._link.connection
        poll, socket = select.poll(), connection.fileno()
        poll.register(wake, select.POLLIN)
        poll.register(socket, select.POLLIN)
        ready = dict(poll.poll(0 if self._fresh else seconds * 1000))
        if wake in ready:
            clear(wake)
        if socket in ready:
            self._receive(connection)
        self._fresh = False

    def _subscribe(self, connection: psycopg.Connection[Any]) -> None:
        self.listening = False
        # Notifications that arrive during a claim come through the handler.
        connection.add_notify_handler(lambda notify: self._dispatch(notify.channel, notify.payload))
        self._channels = dict(fetch(connection, queries.channels()))
        for name in self._channels:
            connection.execute(subscription(name))
        self.listening = True

    def _receive(self, connection: psycopg.Connection[Any]) -> None:
        try:
            connection.pgconn.consume_input()
        except psycopg.OperationalError:
            self.listening = False
            self._link.drop()
            return
        while notify := connection.pgconn.notifies():
            self._dispatch(notify.relname.decode(), notify.extra.decode())

    def _dispatch(self, name: str, payload: str) -> None:
        channel = self._channels.get(name)
        if channel == "byrote_ready":
            self._fresh = True
        elif channel == "byrote_returned":
            self._on_return()
        elif channel is not None and channel in self._handlers and payload == self._worker:
            self._handlers[channel]()


class DiscoveryStore(OnConnection):
    """Reads the front of the queues."""

    def unknown_tasks(self, *, queues: Sequence[str], tasks: Sequence[str]) -> list[UnknownTaskRef]:
        """Return tasks at the front of the queues that are not among these."""
        return self._link.run(queries.unknown_tasks(queues=queues, tasks=tasks))


class FinishStore(OnConnection):
    """Settles attempts."""

    def __init__(self, link: WorkerConnection) -> None:
        super().__init__(link)
        self._detour = Detour()
        self._unsure: set[str] = set()
        """Locked runs, perhaps locked by a copy of their finish whose answer was lost."""

    def finish(self, judged: Sequence[Judged]) -> dict[str, str]:
        """Return the accepted ids and their verdicts, or LOCKED; a missing run lost its lease."""
        self._number_environments(judged)
        plain, detailed = _apart(judged)
        return self._finish_all(plain, _succeed) | self._finish_all(detailed, _finish)

    def _finish_all(
        self,
        judged: Sequence[Judged],
        statement: Callable[[Sequence[Judged]], Query[tuple[str, str]]],
    ) -> dict[str, str]:
        accepted: dict[str, str] = {}
        left, sent_before = judged, False
        while left:
            try:
                entries = {entry[0].id: entry for entry in left}
                accepted |= run_script(self._detour.around(entries, statement), self._link.ask)
            except Interrupted:
                # Only attempts that were not settled are sent again.
                accepted |= self._finished_already(left)
                sent_before = True
            else:
                break
            left = [entry for entry in judged if entry[0].id not in accepted]
        if not (sent_before or self._unsure):
            return accepted
        return accepted | self._finished_by_lost_copy(judged, accepted, sent_before=sent_before)

    def _finished_by_lost_copy(
        self, judged: Sequence[Judged], accepted: Mapping[str, str], *, sent_before: bool
    ) -> dict[str, str]:
        """The runs that a copy settled whose answer was lost, and that a later one did not find."""
        ids = {entry[0].id for entry in judged}
        unsure = ids if sent_before else self._unsure & ids
        missing = [
            entry for entry in judged if entry[0].id in unsure and entry[0].id not in accepted
        ]
        self._unsure -= ids
        self._unsure |= {run_id for run_id in unsure if accepted.get(run_id) == LOCKED}
        return self._finished_already(missing) if missing else {}

    def _finished_already(self, judged: Sequence[Judged]) -> dict[str, str]:
        found = dict(self._link.certain(queries.finished_leases([run for run, _, _ in judged])))
        return {
            run.id: found[run.id] or LETTERS[type(verdict)]
            for run, _, verdict in judged
            if run.id in found
        }

    def _number_environments(self, judged: Sequence[Judged]) -> None:
        """Register environments that have no number yet."""
        for run, _, _ in judged:
            found = run.provenance
            if found is not None and found.id is None:
                query = queries.register_provenance(digest=found.digest, doc=found.text)
                [found.id] = self._link.run(query)


def _apart(judged: Sequence[Judged]) -> tuple[list[Judged], list[Judged]]:
    """Separate those with only a result and the same environment from the others."""
    common = judged[0][0].provenance
    plain: list[Judged] = []
    detailed: list[Judged] = []
    for entry in judged:
        alike = entry[0].provenance is common and is_bare(*entry)
        (plain if alike else detailed).append(entry)
    return plain, detailed


def _succeed(judged: Sequence[Judged]) -> Query[tuple[str, str]]:
    common = judged[0][0].provenance
    return queries.succeed(
        [
            (run.id, run.token, run.attempt, outcome.text, outcome.digest, usage_of(run, outcome))
            for run, outcome, _ in judged
            if isinstance(outcome, Succeeded)
        ],
        provenance=None if common is None else common.id,
    )


def _finish(judged: Sequence[Judged]) -> Query[tuple[str, str]]:
    """Return the statement that settles these; the first one's environment is sent once."""
    rows = [row_of(*entry) for entry in judged]
    common = judged[0][0].provenance
    for (run, _, _), row in zip(judged, rows, strict=True):
        if run.provenance is not common:
            number = 0 if run.provenance is None else run.provenance.id
            row["more"] = {**row.get("more", {}), "provenance": number}
    return queries.finish(rows, provenance=None if common is None else common.id)


class StepStore(OnConnection):
    """Reads and writes ledgers and progress. All statements may safely run twice."""

    def load(self, leases: Sequence[Leased]) -> list[RecordedStep]:
        """Return the ledgers of these runs, each in order."""
        rows = self._link.run(queries.steps([lease.id for lease in leases]))
        return [
            RecordedStep(
                row.run_id,
                row.sequence,
                row.kind,
                row.name,
                row.open,
                row.result_json,
                row.place,
                row.args_hash,
            )
            for row in rows
            if row.kind != "raised"
        ]

    def note(self, steps: Sequence[Mapping[str, Any]]) -> list[StepReply]:
        """Write steps under their leases; one missing from the answer was lost or is locked."""
        return queries.write_steps(steps, self._link.run)

    def progress(self, reports: Sequence[Mapping[str, Any]]) -> list[str]:
        """Store the progress of attempts; a missing run was lost or is locked."""
        return self._link.run(queries.progress(reports))

    def holding(self, leases: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return which of these leases, by id and token, are held now."""
        return self._link.run(locks.holding(leases))


class ArtifactRows(OnConnection):
    """Reads and writes the rows of artifacts."""

    def prefix(self) -> str:
        """Return the prefix of this database's objects in storage that others may share."""
        return self._link.run(queries.artifact_prefix())[0]

    def keep(self, lease: Leased, artifact: Mapping[str, Any]) -> ArtifactReply:
        """Store an artifact under a lease."""
        # A second try after a lost answer finds the first one's row, and returns the same.
        [keeping] = self._link.run(queries.artifact(lease, **artifact))
        return keeping

    def referred(self, hashes: Sequence[str]) -> list[str]:
        """Return which of these hashes an artifact refers to."""
        return self._link.run(queries.referenced(hashes))
