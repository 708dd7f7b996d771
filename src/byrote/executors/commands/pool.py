# SPDX-License-Identifier: MIT
"""Commands: one fresh process per attempt, in any language.

State: an attempt is in `_waiting` until it is passed to the launcher, then in `_running` until its
warden reports that the command and all its processes have ended. One thread, `_serve`, starts
commands, reads all their output, and enforces the deadlines; it only ever waits for all pipes at
once, so that no command can block it. Other threads submit, cancel and forget.

Failures: a command that ignores SIGTERM is killed two seconds later with its whole group; if a
warden dies, its command dies too and the run is given back; a launcher process that dies is
replaced when the next command is started.
"""

import os
import selectors
import subprocess
import threading
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from byrote.core.command import Command, Payload
from byrote.core.errors import BadOption
from byrote.core.outcome import Cancelled, Crashed, Fault, Outcome, Printing, Released
from byrote.core.ports.executor import Asks, Capacity, Clock, ReportOutcomes
from byrote.core.replay.provenance import Provenance, provenance_of
from byrote.core.run import Leased
from byrote.executors.commands.ask_socket import AskSocket
from byrote.executors.commands.attempt import CommandAttempt, Ending
from byrote.executors.commands.container import passes_descriptors
from byrote.executors.commands.description import NOT_DESCRIBED, describe
from byrote.executors.commands.launcher import Launcher, supported
from byrote.executors.runtime.asks import ReplayMode
from byrote.executors.runtime.provenance.environment import FIXED
from byrote.executors.selector_loop import TICK_S, Outcomes, SelectorLoop
from byrote.system.wake import clear

TERM_GRACE_S = 2.0
"""How long a command may take to heed SIGTERM."""
LAST_S = 10.0
"""How long `stop` waits for a process that SIGKILL does not end; the kernel may hold one."""
FAREWELLS_MAX = 100
"""Processes that remove containers at once; beyond that the oldest is killed."""
REFERENCE_ENV = ("PYTHONPATH", "VIRTUAL_ENV", "DJANGO_SETTINGS_MODULE")
"""Variables that our own executor needs to find the app."""


class CommandOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The number of commands at once, and the executor of tasks that name no program."""

    concurrency: int
    python: str
    app: str
    """`module:name` of the app that `python -m byrote.executor` imports."""
    payload: Payload = "stdin"
    """How the payload is passed to commands that do not specify it."""
    replay: ReplayMode | None = None
    """How steps are answered where every run is a replay."""
    plain: Command | None = None
    """How tasks that are not commands themselves are executed; None: not by this pool."""


class Commands(SelectorLoop):
    """An executor of external processes."""

    def __init__(
        self,
        options: CommandOptions,
        *,
        worker: str,
        clock: Clock,
        environment: Mapping[str, str] | None = None,
        about: Mapping[str, Any] | None = None,
        asks: Asks | None = None,
    ) -> None:
        super().__init__()
        self._options = options
        self._asks = asks
        self._worker = worker
        self._clock = clock
        self._environment = dict(os.environ if environment is None else environment)
        self._about = {} if about is None else dict(about)
        self._provenances: dict[str, Provenance] = {}
        self.surroundings: Mapping[str, Any] = {}
        """The environment, measured in a process that imported the app; empty if not recorded."""
        self.app = NOT_DESCRIBED
        """The app, if all its tasks are executed here; known after the start."""
        self._plans: dict[str, Command] = {}
        self._default = self._completed(Command())
        self._waiting: deque[Leased] = deque()
        """Runs that were submitted and not started: no more than `room` had announced."""
        self._running: dict[int, CommandAttempt] = {}
        self._lock = threading.RLock()
        self._launcher = Launcher()
        self._draining = self._stopping = False
        self._leave_at = 0.0
        self._farewells: list[subprocess.Popen[bytes]] = []

    def learn(self, plans: Mapping[str, Command]) -> None:
        """Which tasks are executed here, by name and version, and how."""
        if plans and not supported():
            raise BadOption(
                f"Commands need Linux, and {next(iter(plans))} is one; run this worker on Linux, "
                "or execute its tasks with --executor hand or inline."
            )
        self._plans = {key: self._completed(plan) for key, plan in plans.items()}

    def _completed(self, plan: Command) -> Command:
        if plan.payload is None:
            # A file is a descriptor, which not every container passes on.
            fits = self._options.payload != "file" or passes_descriptors(plan.container)
            payload = self._options.payload if fits else "stdin"
            plan = msgspec.structs.replace(plan, payload=payload)
        if plan.argv:
            return plan
        argv = (self._options.python, "-m", "byrote.executor", "--app", self._options.app)
        return msgspec.structs.replace(plan, argv=argv, env=(*REFERENCE_ENV, *plan.env))

    # -- The executor's interface ----------------------------------------------------------------

    def start(self, report: ReportOutcomes) -> None:
        """Start the serving thread; the first command starts the launcher.

        If all tasks are executed here, read them first; BadOption when the app cannot be imported.
        """
        if self._options.plain is not None:
            self.app = describe(self._options.python, self._options.app)
            self.learn(dict.fromkeys(self.app.tasks, self._options.plain) | self.app.commands)
            self.surroundings = self.app.provenance
        self._begin_serving(report, "byrote-commands")

    @property
    def tasks(self) -> Sequence[str]:
        """The tasks that are executed here."""
        return sorted(self._plans)

    @property
    def mute(self) -> frozenset[str]:
        """Tasks whose programs cannot ask anything of their worker, so have no ledger."""
        return frozenset(key for key, plan in self._plans.items() if not _asks(plan))

    @property
    def free(self) -> int:
        """How many more commands may be started now."""
        with self._lock:
            return self._options.concurrency - len(self._running) - len(self._waiting)

    def room(self) -> Capacity:
        """How much may be claimed now, of which tasks."""
        self._check()
        free = 0 if self._draining else self.free
        return Capacity(free, self.tasks) if free > 0 and self._plans else Capacity(0, ())

    def submit(self, runs: Sequence[Leased]) -> None:
        """Start a command for each, as soon as there is room."""
        with self._lock:
            self._waiting.extend(runs)
        self._nudge()

    def cancel(self, runs: Collection[Leased]) -> None:
        """Send SIGTERM to these attempts, and SIGKILL two seconds later."""
        self._report_ends(self._end(runs, Ending(Cancelled()), b"T"))

    def forget(self, runs: Collection[Leased]) -> None:
        """Kill these attempts without a report: their leases are lost."""
        self._end(runs, Ending(None), b"K")

    def printed(self, run: Leased) -> Printing | None:
        """The output of a running attempt so far."""
        with self._lock:
            found = [attempt for attempt in self._running.values() if attempt.run is run]
        return found[0].printed() if found else None

    def give_back(self) -> None:
        """Start no more runs; report those that have not begun as released."""
        self._draining = True
        with self._lock:
            back = list(self._waiting)
            self._waiting.clear()
        self._release(back)

    def kill(self) -> None:
        """Kill every command; runs that were under way are reported as released."""
        self.give_back()
        with self._lock:
            under_way = [attempt.run for attempt in self._running.values()]
        self._end(under_way, Ending(Released()), b"K")

    def stop(self) -> None:
        """End the serving thread and the helper process, once nothing runs any more."""
        self._leave_at = self._clock() + LAST_S
        self._stopping = self._draining = True
        self._end_serving()

    def _end(self, runs: Collection[Leased], ending: Ending, word: bytes) -> Outcomes:
        reports: Outcomes = []
        wanted = {id(run) for run in runs}
        with self._lock:
            if ending.fate is not None:
                reports = [(run, ending.fate) for run in self._waiting if id(run) in wanted]
            self._waiting = deque(run for run in self._waiting if id(run) not in wanted)
            for attempt in self._running.values():
                if id(attempt.run) in wanted:
                    self._finish_off(attempt, ending, word)
        self._nudge()
        return reports

    def _finish_off(self, attempt: CommandAttempt, ending: Ending, word: bytes) -> None:
        # The first ending counts, except that a run whose lease is lost is never reported.
        if attempt.ending is None or ending.fate is None:
            attempt.ending = ending
        if attempt.kill_at is None or word == b"K":
            attempt.kill_at = self._clock() + TERM_GRACE_S
            attempt.send_word(word)

    # -- The serving thread ----------------------------------------------------------------------

    def _serve(self) -> None:
        next_tick = self._clock()
        while not (self._stopping and (not self._running or self._clock() > self._leave_at)):
            reports: Outcomes = self._begin()
            if self._clock() >= next_tick:
                next_tick = self._clock() + TICK_S
                self._keep_deadlines()
            for key, _events in self._selector.select(TICK_S if self._running else 1.0):
                if key.data is None:
                    clear(self._wake.fd)
                    self._watch_ask_sockets()
                else:
                    reports += self._attend(key.data, key.fd)
            self._report_ends(reports)
        self._launcher.close()

    def _begin(self) -> Outcomes:
        reports: Outcomes = []
        # Hold the lock to the end: a thread that cancels an attempt needs its warden.
        with self._lock:
            while self._waiting and len(self._running) < self._options.concurrency:
                run = self._waiting.popleft()
                plan = self._plans.get(f"{run.task}@{run.version}", self._default)
                try:
                    self._start(run, plan)
                except OSError as error:
                    reports.append((run, self._troubled(run, error)))
        return reports

    def _start(self, run: Leased, plan: Command) -> None:
        attempt = CommandAttempt(run, plan, worker=self._worker, now=self._clock())
        run.provenance = self._provenance("command" if plan.container is None else "container")
        try:
            if self._asks is not None and _asks(plan):
                attempt.ask_socket = AskSocket(run, self._asks, self._nudge, self._options.replay)
            attempt.start(self._launcher, self._environment)
        except OSError:
            attempt.pipes.close()
            if attempt.ask_socket is not None:
                attempt.ask_socket.hand_over()
                attempt.ask_socket.close()
            raise
        self._running[id(attempt)] = attempt
        self._watch(attempt)

    def _provenance(self, executor: str) -> Provenance | None:
        if executor not in self._provenances and self.surroundings:
            doc = {**self.surroundings, "environment": FIXED, "worker": self._about}
            self._provenances[executor] = provenance_of(doc | {"executor": executor})
        return self._provenances.get(executor)

    def _troubled(self, run: Leased, error: OSError) -> Outcome:
        message = f"The worker could not start a process: {error.strerror}."
        fault = Fault("lost", "CannotFork", message, attempt=run.attempt, worker=self._worker)
        return Crashed(fault)

    def _watch(self, attempt: CommandAttempt) -> None:
        pipes = attempt.pipes
        for fd in (pipes.stdout, pipes.stderr, pipes.envelope, attempt.warden, attempt.ask_socket):
            if fd is not None:
                self._selector.register(fd, selectors.EVENT_READ, attempt)
        if pipes.stdin is not None:
            self._selector.register(pipes.stdin, selectors.EVENT_WRITE, attempt)

    def _attend(self, attempt: CommandAttempt, fd: int) -> Outcomes:
        """Handle a ready descriptor of an attempt. Returns its outcome if it has ended."""
        pipes = attempt.pipes
        if id(attempt) not in self._running:
            return []  # It ended earlier in the same round.
        if fd == pipes.stdin:
            if not attempt.feed():
                self._selector.unregister(fd)
            return []
        if fd in (pipes.stdout, pipes.stderr, pipes.envelope):
            if attempt.read(fd) == 0:
                self._selector.unregister(fd)
            return []
        if attempt.ask_socket is not None and fd == attempt.ask_socket.fileno():
            self._serve_asks(attempt.ask_socket, attempt)
            return []
        return self._receive(attempt, attempt.listen())

    def _serve_asks(self, socket: AskSocket, attempt: CommandAttempt) -> None:
        socket.send()
        if socket.receive():
            writing = selectors.EVENT_WRITE if socket.backed_up else 0
            self._selector.modify(socket, selectors.EVENT_READ | writing, attempt)
        else:
            self._selector.unregister(socket)
            # Close it, so that a program which waits for an answer reads the end of file.
            socket.close()
            attempt.ask_socket = None

    def _watch_ask_sockets(self) -> None:
        """Watch the sockets that did not accept a whole answer."""
        for attempt in self._running.values():
            socket = attempt.ask_socket
            if socket is not None and socket.backed_up and socket in self._selector.get_map():
                both = selectors.EVENT_READ | selectors.EVENT_WRITE
                self._selector.modify(socket, both, attempt)

    def _receive(self, attempt: CommandAttempt, word: bytes | None) -> Outcomes:
        if word is None:
            return []
        well = True
        match word[:1], _numbers(word):
            case b"P", [pid]:
                attempt.started(pid)
                return []
            case b"X", [code, cpu_us, rss_max]:
                wall_us = int((self._clock() - attempt.begun) * 1e6)
                usage = {"wall_us": wall_us, "cpu_us": cpu_us, "rss_max": rss_max}
                outcome = attempt.outcome_of_exit(code, usage)
            case b"E", [number]:
                outcome = attempt.refused(number)
            case _:
                # The warden has ended, or sent a malformed message.
                well, outcome = False, attempt.lost()
        self._drop(attempt, well=well)
        return [] if outcome is None else [(attempt.run, outcome)]

    def _drop(self, attempt: CommandAttempt, *, well: bool = False) -> None:
        pipes, watched = attempt.pipes, self._selector.get_map()
        socket = attempt.ask_socket
        for fd in (pipes.stdin, pipes.stdout, pipes.stderr, pipes.envelope, attempt.warden, socket):
            if fd is not None and fd in watched:
                self._selector.unregister(fd)
        with self._lock:
            del self._running[id(attempt)]
            pipes.close()
            if socket is not None:
                socket.close()
            # From here on no thread can send this warden a signal meant for this attempt.
            warden, attempt.warden = attempt.warden, None
        if warden is not None:
            self._launcher.release(warden, well=well)
        self._clean_up(attempt)

    def _clean_up(self, attempt: CommandAttempt) -> None:
        argv = attempt.cleanup
        self._farewells = [process for process in self._farewells if process.poll() is None]
        if len(self._farewells) >= FAREWELLS_MAX:
            self._farewells.pop(0).kill()  # An engine that does not answer.
        if argv is not None:
            quiet = subprocess.DEVNULL
            self._farewells.append(
                subprocess.Popen(argv, stdin=quiet, stdout=quiet, stderr=quiet)  # noqa: S603 -- the operator's own engine.
            )

    def _keep_deadlines(self) -> None:
        now = self._clock()
        with self._lock:
            for attempt in self._running.values():
                run = attempt.run
                if attempt.kill_at is not None:
                    if now > attempt.kill_at and not attempt.killed:
                        attempt.send_word(b"K")
                elif run.timeout_ms is not None and now > attempt.begun + run.timeout_ms / 1000:
                    self._finish_off(attempt, Ending(None, timeout=True), b"T")
                elif now > run.deadline:
                    # The database may still accept the release, if it arrives in time.
                    self._finish_off(attempt, Ending(Released()), b"K")


def _asks(plan: Command) -> bool:
    """Whether the command is our own executor and can inherit the socket for asks."""
    return plan.argv[1:3] == ("-m", "byrote.executor") and passes_descriptors(plan.container)


def _numbers(word: bytes) -> list[int]:
    try:
        return [int(number) for number in word[1:].split()]
    except ValueError:
        return []
