# SPDX-License-Identifier: MIT
"""The store of a worker that has the database at hand: one connection for each of its parts."""

import os
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
from byrote.core.ports.store import ClaimRequest, PartContext
from byrote.core.run import Leased
from byrote.core.verdict import LETTERS, Judged, is_bare, row_of, usage_of
from byrote.store import locks, migrate, queries, rights
from byrote.store.connect import PLAN_GUARDS, DatabaseAddress
from byrote.store.locks import Detour, drive
from byrote.store.maintenance import MaintenanceStore
from byrote.store.query import Query
from byrote.store.runners.link import OnConnection, WorkerConnection
from byrote.store.runners.sync import Interrupted, refused, unreachable
from byrote.store.writable import check_writable


class PostgresStore:
    """A worker's store on PostgreSQL.

    Claims that are not durable do not wait for the disk: a server crash may hand a run out twice.
    """

    def __init__(
        self,
        door: DatabaseAddress,
        *,
        listen: bool = True,
        durable_claims: bool = True,
        keep_events: timedelta = timedelta(days=30),
    ) -> None:
        self._door = door
        self._keep_events = keep_events
        self._listen = listen and not door.pooled
        self._claims = () if durable_claims else ("synchronous_commit=off",)
        self._watch = threading.Event()
        """Somebody has asked to watch a run of ours."""

    def check(self) -> None:
        """Raise unless the database answers, has our schema, and lets this login work."""
        try:
            with self._door.open("worker") as connection:
                migrate.check(connection)
                check_writable(connection, self._door)
                rights.demand(connection, "byrote_worker", rights.TO_WORK)
        except psycopg.errors.InsufficientPrivilege as error:
            raise refused(error, self._door) from error
        except psycopg.OperationalError as error:
            raise unreachable(self._door, error) from error

    def leases(
        self, line: PartContext, *, on_cancel: Callable[[], None], on_return: Callable[[], None]
    ) -> "LeaseStore":
        """A claimer's line."""
        link = self._link(line, *self._claims)
        heeds = {"byrote_cancel": on_cancel, "byrote_watch": self._watch.set}
        return LeaseStore(link, listen=self._listen, heeds=heeds, on_return=on_return)

    def verdicts(self, line: PartContext) -> "FinishStore":
        """A recorder's line."""
        return FinishStore(self._link(line))

    def roll(self, line: PartContext) -> "RegistryStore":
        """A keeper's line."""
        return RegistryStore(self._link(line))

    def ledgers(self, line: PartContext) -> "StepStore":
        """A scribe's line."""
        return StepStore(self._link(line))

    def shelf(self, line: PartContext) -> "ArtifactRows":
        """A line for artifacts."""
        return ArtifactRows(self._link(line))

    def duties(self, line: PartContext) -> MaintenanceStore:
        """A sweeper's line."""
        # A crash of the server may undo the last duties, as a whole: they are simply done again.
        # One that the role has no right to, or that meets a lock, must not hold up the others and
        # the runs that wait for them, so it is not insisted on.
        link = self._link(line, "synchronous_commit=off", "lock_timeout=1s", insists=False)
        return MaintenanceStore(link, self._watch, keep_events=self._keep_events)

    def strangers(self, line: PartContext) -> "DiscoveryStore":
        """A finder's line."""
        return DiscoveryStore(self._link(line))

    def _link(self, line: PartContext, *settings: str, insists: bool = True) -> WorkerConnection:
        return WorkerConnection(
            self._door,
            line.purpose,
            *PLAN_GUARDS,
            *settings,
            chance=line.chance,
            stopped=line.stopped,
            notice=line.notice,
            impatient=line.impatient,
            insists=insists,
        )


class LeaseStore(OnConnection):
    """Claims, and hears what the database notifies."""

    def __init__(
        self,
        link: WorkerConnection,
        *,
        listen: bool,
        heeds: Mapping[str, Callable[[], None]],
        on_return: Callable[[], None],
    ) -> None:
        super().__init__(link)
        self._heeds = heeds
        self._on_return = on_return
        self._worker = ""
        self._fresh = False
        """Work was notified while a claim was under way, which may have missed it."""
        self.listening = False
        if listen:
            link.on_open = self._subscribe

    def claim(self, wanted: ClaimRequest) -> list[Leased] | None:
        """Lease what is wanted; None when the answer was lost and nothing had come of it."""
        self._worker = wanted.worker
        self._fresh = False
        try:
            return self._link.ask(queries.claim(**wanted._asdict()))
        except Interrupted:
            lost = queries.claimed(
                worker=wanted.worker,
                token=wanted.token,
                deadline=wanted.deadline,
                claimed_at=wanted.claimed_at,
            )
            # If nothing came of it, whatever was notified meanwhile was lost with the line.
            return self._link.certain(lost) or None

    def idle(self, *, worker: str, idle: bool) -> None:
        """Ask to be woken, or stop asking."""
        self._link.run(queries.idle(worker=worker, idle=idle))

    def unfinished(self, *, queues: Sequence[str], tasks: Sequence[str]) -> Remainder:
        """What is left in these queues."""
        return self._link.run(queries.unfinished(queues=queues, tasks=tasks))[0]

    def rest(self, wake: int, seconds: float, *, for_room: bool = False) -> None:  # noqa: ARG002 -- a notification costs nothing to hear.
        """Wait until woken, notified, or for so long."""
        connection = self._link.connection
        poll, line = select.poll(), connection.fileno()
        poll.register(wake, select.POLLIN)
        poll.register(line, select.POLLIN)
        ready = dict(poll.poll(0 if self._fresh else seconds * 1000))
        if wake in ready:
            os.eventfd_read(wake)
        if line in ready:
            self._hear(connection)
        self._fresh = False

    def _subscribe(self, connection: psycopg.Connection[Any]) -> None:
        self.listening = False
        # Notifications that arrive while a claim is under way come through the handler.
        connection.add_notify_handler(lambda notify: self._heard(notify.channel, notify.payload))
        connection.execute("listen byrote_ready")
        connection.execute("listen byrote_cancel")
        connection.execute("listen byrote_watch")
        connection.execute("listen byrote_returned")
        self.listening = True

    def _hear(self, connection: psycopg.Connection[Any]) -> None:
        try:
            connection.pgconn.consume_input()
        except psycopg.OperationalError:
            self.listening = False
            self._link.drop()
            return
        while notify := connection.pgconn.notifies():
            self._heard(notify.relname.decode(), notify.extra.decode())

    def _heard(self, channel: str, payload: str) -> None:
        if channel == "byrote_ready":
            self._fresh = True
        elif channel == "byrote_returned":
            self._on_return()
        elif channel in self._heeds and payload == self._worker:
            self._heeds[channel]()


class DiscoveryStore(OnConnection):
    """Looks at the front of the queues."""

    def strangers(self, *, queues: Sequence[str], tasks: Sequence[str]) -> list[UnknownTaskRef]:
        """What waits there and is not among these."""
        return self._link.run(queries.unknown_tasks(queues=queues, tasks=tasks))


class FinishStore(OnConnection):
    """Settles attempts."""

    def __init__(self, link: WorkerConnection) -> None:
        super().__init__(link)
        self._detour = Detour()
        self._unsure: set[str] = set()
        """Runs that are locked, perhaps by a copy of their finish whose answer was lost."""

    def finish(self, judged: Sequence[Judged]) -> dict[str, str]:
        """The ids that were accepted and as what, or LOCKED; what is missing was lost."""
        self._number_environments(judged)
        bare, wordy = _apart(judged)
        return self._settle(bare, _succeed) | self._settle(wordy, _finish)

    def _settle(
        self,
        judged: Sequence[Judged],
        statement: Callable[[Sequence[Judged]], Query[tuple[str, str]]],
    ) -> dict[str, str]:
        accepted: dict[str, str] = {}
        left, sent_before = judged, False
        while left:
            try:
                entries = {entry[0].id: entry for entry in left}
                accepted |= drive(self._detour.around(entries, statement), self._link.ask)
            except Interrupted:
                # Only what was not settled is sent again.
                accepted |= self._settled(left)
                sent_before = True
            else:
                break
            left = [entry for entry in judged if entry[0].id not in accepted]
        ids = {entry[0].id for entry in judged}
        unsure = ids if sent_before else self._unsure & ids
        missing = [entry for entry in judged if entry[0].id in unsure - accepted.keys()]
        self._unsure -= ids
        self._unsure |= {run_id for run_id in unsure if accepted.get(run_id) == LOCKED}
        # The copy whose answer was lost may have settled what a later one then did not find.
        return accepted | (self._settled(missing) if missing else {})

    def _settled(self, judged: Sequence[Judged]) -> dict[str, str]:
        found = dict(self._link.certain(queries.finished_leases([run for run, _, _ in judged])))
        return {
            run.id: found[run.id] or LETTERS[type(verdict)]
            for run, _, verdict in judged
            if run.id in found
        }

    def _number_environments(self, judged: Sequence[Judged]) -> None:
        """Have numbers for the environments that are spoken of for the first time."""
        for run, _, _ in judged:
            found = run.provenance
            if found is not None and found.id is None:
                query = queries.register_provenance(digest=found.digest, doc=found.text)
                [found.id] = self._link.run(query)


def _apart(judged: Sequence[Judged]) -> tuple[list[Judged], list[Judged]]:
    """Those that say nothing but their result, all executed by the same, and the others."""
    common = judged[0][0].provenance
    bare: list[Judged] = []
    wordy: list[Judged] = []
    for entry in judged:
        alike = entry[0].provenance is common and is_bare(*entry)
        (bare if alike else wordy).append(entry)
    return bare, wordy


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
    """The statement that settles these; what executed most of them is said once for all."""
    rows = [row_of(*entry) for entry in judged]
    common = judged[0][0].provenance
    for (run, _, _), row in zip(judged, rows, strict=True):
        if run.provenance is not common:
            number = 0 if run.provenance is None else run.provenance.id
            row["more"] = {**row.get("more", {}), "provenance": number}
    return queries.finish(rows, provenance=None if common is None else common.id)


class RegistryStore(OnConnection):
    """Keeps leases, and a worker's line in the list."""

    def __init__(self, link: WorkerConnection) -> None:
        super().__init__(link)
        self._detour = Detour()

    def register(self, description: Mapping[str, Any]) -> None:
        """Announce a worker."""
        self._link.run(queries.register(description))

    def heartbeat(self, worker: str, load: Mapping[str, Any]) -> bool:
        """Say that a worker lives; False when it is not on the list."""
        return bool(self._link.run(queries.heartbeat(worker=worker, **load)))

    def deregister(self, worker: str) -> None:
        """Take a worker off the list."""
        self._link.run(queries.deregister(worker=worker))

    def renew(self, leases: Sequence[Leased], *, lease_for: timedelta) -> Mapping[str, bool | str]:
        """Extend leases: ids still held and whether their cancellation is wanted, or LOCKED."""
        asking = self._detour.around(
            {lease.id: lease for lease in leases},
            lambda some: queries.renew(some, lease_for=lease_for),
        )
        return drive(asking, self._link.run)


class StepStore(OnConnection):
    """Reads and writes ledgers and progress. All statements may run twice without harm."""

    def load(self, leases: Sequence[Leased]) -> list[RecordedStep]:
        """The ledgers of these runs, each in order."""
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
        """Write steps under their leases; what is missing from the answer was lost or is locked."""
        return self._link.run(queries.step(steps))

    def progress(self, reports: Sequence[Mapping[str, Any]]) -> list[str]:
        """Write how far attempts have come; what is missing was lost or is locked."""
        return self._link.run(queries.progress(reports))

    def holding(self, leases: Sequence[Mapping[str, Any]]) -> list[str]:
        """Which of these leases, by id and token, hold now."""
        return self._link.run(locks.holding(leases))


class ArtifactRows(OnConnection):
    """Keeps the rows of artifacts."""

    def home(self) -> str:
        """The name of this database's part of a place that others may share."""
        return self._link.run(queries.artifact_prefix())[0]

    def keep(self, lease: Leased, artifact: Mapping[str, Any]) -> ArtifactReply:
        """Store an artifact under a lease."""
        # A second try after a lost answer finds the first one's row, and says the same.
        [keeping] = self._link.run(queries.artifact(lease, **artifact))
        return keeping

    def referred(self, hashes: Sequence[str]) -> list[str]:
        """Which of these hashes some artifact refers to."""
        return self._link.run(queries.referenced(hashes))
