# SPDX-License-Identifier: MIT
"""Sends the output of a running attempt to its watchers; does nothing without watchers.

A watcher writes a row that soon expires, and wakes the worker. New output of the attempt is then
written there up to four times a second: its end, and its size. The output that is stored at the end
of the attempt does not depend on this.
"""

from collections.abc import Sequence

from byrote.core.outcome import Printing
from byrote.core.ports.executor import Clock, Executor
from byrote.core.ports.store import MaintenancePort
from byrote.core.run import Leased
from byrote.worker.leases import HeldLeases

LOOK_S = 5.0
"""How often to look for watchers without a notification, which may get lost."""
SHOWN_MAX = 64 * 1024
"""Bytes of each stream that are shown at once."""
_NOTHING = Printing(b"", b"", 0, 0)


class OutputWatcher:
    """The watched runs of this worker; served by the maintenance thread."""

    def __init__(
        self, duties: MaintenancePort, executor: Executor, held: HeldLeases, *, clock: Clock
    ) -> None:
        self._duties = duties
        self._executor = executor
        self._held = held
        self._clock = clock
        self._look_at = 0.0
        self._ids: Sequence[str] = ()
        self._sent: dict[str, tuple[int, int, int]] = {}

    def serve(self) -> None:
        """Send new output; called every quarter of a second or so."""
        now = self._clock()
        if self._duties.watch_asked() or now >= self._look_at:
            self._look_at = now + (LOOK_S / 2 if self._ids else LOOK_S)
            self._ids = self._duties.watched()
            # Sent again from time to time, even without new output.
            self._sent = {}
        for run in self._held.find(self._ids):
            self._write(run)

    def _write(self, run: Leased) -> None:
        out, err, out_size, err_size = self._executor.printed(run) or _NOTHING
        state = (run.attempt, out_size, err_size)
        if self._sent.get(run.id) != state:
            self._sent[run.id] = state
            shown = Printing(out[-SHOWN_MAX:], err[-SHOWN_MAX:], out_size, err_size)
            self._duties.live_output(run, shown)
