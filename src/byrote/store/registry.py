# SPDX-License-Identifier: MIT
"""The store of a worker's lease keeper."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from byrote.core.ports.replies import NAME_SILENT_FOR, NameHeld
from byrote.core.ports.script import run_script
from byrote.core.run import Leased
from byrote.store import queries
from byrote.store.locks import Detour
from byrote.store.runners.link import OnConnection, WorkerConnection


class RegistryStore(OnConnection):
    """Renews leases, and keeps a worker's row in the registry."""

    def __init__(self, link: WorkerConnection, *, holder: str | None) -> None:
        super().__init__(link)
        self._detour = Detour()
        self._holder = holder

    def register(self, description: Mapping[str, Any]) -> Sequence[str] | NameHeld:
        """Register a worker; returns its aliases that are tasks of other live workers.

        Not registered: returns the live worker of another process that has its name.
        """
        sent = {**description, "holder": self._holder}
        while not (found := self._link.run(queries.register(sent, silent_for=NAME_SILENT_FOR))):
            name = description["worker"]
            for row in self._link.run(queries.workers()):
                if row.worker == name:
                    return NameHeld(name, row.host, row.pid, row.seen_at)
        return found[0]

    def heartbeat(self, worker: str, load: Mapping[str, Any]) -> Sequence[str] | None:
        """Record that a worker is alive; returns what `register` does, None if it is unknown."""
        sent = queries.heartbeat(worker=worker, holder=self._holder, **load)
        return next(iter(self._link.run(sent)), None)

    def deregister(self, worker: str) -> None:
        """Delete a worker from the registry, unless another process has its name by now."""
        self._link.run(queries.deregister(worker=worker, holder=self._holder))

    def renew(self, leases: Sequence[Leased], *, lease_for: timedelta) -> Mapping[str, bool | str]:
        """Extend leases; returns the ids still held and whether to cancel them, or LOCKED."""
        script = self._detour.around(
            {lease.id: lease for lease in leases},
            lambda some: queries.renew(some, lease_for=lease_for),
        )
        return run_script(script, self._link.run)
