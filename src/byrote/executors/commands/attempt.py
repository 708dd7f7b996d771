# SPDX-License-Identifier: MIT
"""One attempt by a command: its input and environment, its output so far, its outcome."""

import json
import os
import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from byrote.core.command import Command
from byrote.core.json.seed import SEED_LABEL, run_digest, seed_of
from byrote.core.outcome import OUTPUT_MAX, Crashed, Failed, Fault, Outcome, Printing
from byrote.core.run import Leased
from byrote.executors.commands import container
from byrote.executors.commands.ask_socket import AskSocket
from byrote.executors.commands.envelope import (
    ENVELOPE_MAX,
    CommandEnd,
    late_fault,
    read_end,
    start_fault,
    stderr_tail,
)
from byrote.executors.commands.launcher import Launcher, Pipes
from byrote.executors.runtime.output import Tail, output_of
from byrote.executors.runtime.provenance.environment import FIXED

PIECE = 1 << 16
DRAIN_MAX = 256
"""Pieces read after the end: more than any pipe holds."""
RESULT_FD = 3
PAYLOAD_FILE = "/dev/fd/4"
PASSED = ("PATH", "HOME")
_PF_EXITING = 4


class Ending(NamedTuple):
    """An end that the worker causes: the outcome to report, or None to report nothing."""

    fate: Outcome | None
    timeout: bool = False


class CommandAttempt:
    """A command under way. Only the thread that serves commands reads from it."""

    def __init__(self, run: Leased, plan: Command, *, worker: str, now: float) -> None:
        self.run = run
        self.plan = plan
        self.begun = now
        self.ending: Ending | None = None
        self.kill_at: float | None = None
        self.killed = False
        self.pid: int | None = None
        self.warden: socket.socket | None = None
        self._worker = worker
        self._name = "" if plan.container is None else container.name_of(run)
        self._stdout, self._stderr = Tail(ENVELOPE_MAX), Tail()
        self._mutex = threading.Lock()
        """Guards the tails, which other threads may read."""
        self._envelope = bytearray()
        self._envelope_cut = self._closed = self._ended_stdout = False
        document = _document(run, plan)
        self._unsent = memoryview(document if plan.payload == "stdin" else b"")
        self.pipes = Pipes(document if plan.payload == "file" else None)
        self.ask_socket: AskSocket | None = None

    # -- Beginning -------------------------------------------------------------------------------

    def start(self, launcher: Launcher, environ: Mapping[str, str]) -> None:
        """Start the command through the launcher."""
        plan = self.plan
        env = environment(self.run, plan, environ)
        fds = list(self.pipes.theirs)
        if self.ask_socket is not None:
            env |= self.ask_socket.variables(len(fds))
            fds.append(self.ask_socket.theirs)
        argv, cwd = [*plan.argv, *_arguments(self.run, plan)], plan.cwd
        if plan.container is not None:
            launch = container.Launch(argv, env, cwd or str(Path.cwd()), self._name, plan.limits)
            argv, cwd = container.launcher_argv(plan.container, launch), None
        limits = msgspec.to_builtins(plan.limits)
        request = {"argv": argv, "env": env, "cwd": cwd, "limits": limits}
        self.warden = launcher.spawn(request, fds)
        self.pipes.hand_over()
        if self.ask_socket is not None:
            self.ask_socket.hand_over()
        self.feed()

    def feed(self) -> bool:
        """Write as much as stdin accepts; returns whether bytes are left."""
        if self.pipes.stdin is None:
            return False
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self.pipes.stdin, self._unsent) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            # The command closed stdin early; that is allowed.
            self._unsent = self._unsent[:0]
        os.close(self.pipes.stdin)
        self.pipes.stdin = None
        return False

    # -- On the way ------------------------------------------------------------------------------

    def started(self, pid: int) -> None:
        """Record the process id of the command."""
        self.pid = pid
        self._closed = self._ended_stdout and self._lives()

    def read(self, fd: int) -> int | None:
        """Read some output. Returns its size, 0 at the end, None when there is none now."""
        try:
            piece = os.read(fd, PIECE)
        except BlockingIOError:
            return None
        if fd == self.pipes.envelope:
            room = ENVELOPE_MAX - len(self._envelope)
            self._envelope += piece[:room]
            self._envelope_cut = self._envelope_cut or len(piece) > room
        elif piece:
            with self._mutex:
                (self._stderr if fd == self.pipes.stderr else self._stdout).add(piece)
        elif fd == self.pipes.stdout and not self._ended_stdout:
            self._ended_stdout = True
            self._closed = self._lives()
        return len(piece)

    def _lives(self) -> bool:
        """Whether the process continues, and is not just exiting."""
        try:
            with open(f"/proc/{self.pid}/stat", "rb", 0) as file:  # noqa: PTH123 -- the hot form of a tiny read.
                stat = file.read(1024).rpartition(b")")[2].split()
        except OSError:
            return False
        return stat[0] not in b"ZX" and not int(stat[6]) & _PF_EXITING

    def listen(self) -> bytes | None:
        """The next message of its warden: empty when it has ended, None when there is none."""
        try:
            return self.warden.recv(64) if self.warden else b""
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def send_word(self, word: bytes) -> None:
        """Have the warden send SIGTERM (`T`) or SIGKILL (`K`) to the whole group."""
        self.killed = self.killed or word == b"K"
        try:
            if self.warden is not None:
                self.warden.send(word)
        except OSError:
            return

    def printed(self) -> Printing:
        """The output so far; from any thread."""
        with self._mutex:
            out, err = self._stdout.kept, self._stderr.kept
            return Printing(out, err, self._stdout.total, self._stderr.total)

    # -- End -------------------------------------------------------------------------------------

    def outcome_of_exit(self, code: int, usage: dict[str, int]) -> Outcome | None:
        """The outcome, now that the command and all its processes have ended."""
        for fd in (self.pipes.stdout, self.pipes.stderr, self.pipes.envelope):
            for _ in range(DRAIN_MAX):
                if not self.read(fd):
                    break
        end = self._end(code)
        used = usage if container.measurable(self.plan.container) else None
        if self.ending is None:
            reading = read_end(end)
            outcome = msgspec.structs.replace(reading.outcome, usage=used)
            return self._with_output(outcome, reading.stdout)
        fate = self.ending.fate
        if self.ending.timeout:
            limit_ms = self.run.timeout_ms or 0
            fault = late_fault(end, limit_ms=limit_ms, killed=self.killed)
            fate = Failed(fault, usage=used)
        return None if fate is None else self._with_output(fate, end.stdout)

    def _end(self, code: int) -> CommandEnd:
        stdout, stderr = self._stdout.kept, self._stderr.kept
        return CommandEnd(
            code=code,
            envelope=bytes(self._envelope),
            stdout=stdout,
            stderr=stderr,
            envelope_cut=self._envelope_cut,
            stdout_cut=self._stdout.dropped > 0,
            closed=self._closed,
            bare=self.plan.payload in {"argv", "argv-payload"},
            attempt=self.run.attempt,
            worker=self._worker,
        )

    def _with_output(self, outcome: Outcome, stdout: bytes) -> Outcome:
        shown = Tail(OUTPUT_MAX)
        shown.dropped = self._stdout.dropped
        shown.add(stdout)
        output = output_of(shown, self._stderr)
        return outcome if output is None else msgspec.structs.replace(outcome, output=output)

    def refused(self, number: int) -> Outcome | None:
        """The outcome of a command that could not be started."""
        if self.ending is not None:
            return self.ending.fate
        program = self.plan.argv[0] if self.plan.container is None else self._launcher()
        attempt, worker = self.run.attempt, self._worker
        return Failed(start_fault(program, number, attempt=attempt, worker=worker))

    def _launcher(self) -> str:
        launcher = self.plan.container.launcher if self.plan.container else ""
        return launcher if isinstance(launcher, str) else launcher[0]

    def lost(self) -> Outcome | None:
        """The outcome when the warden died and the command's exit status is unknown."""
        if self.ending is not None and not self.ending.timeout:
            return self.ending.fate
        fault = Fault(
            kind="crashed",
            type="WardenLost",
            message="The process that watched over the command went down.",
            attempt=self.run.attempt,
            worker=self._worker,
            stderr=stderr_tail(self._stderr.kept),
        )
        return self._with_output(Crashed(fault), self._stdout.kept)

    @property
    def cleanup(self) -> list[str] | None:
        """The command that removes a container whose client was killed."""
        return container.cleanup_argv(self.plan.container, self._name) if self.killed else None


def environment(run: Leased, plan: Command, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command: small, and the same on every machine."""
    passed = {name: environ[name] for name in PASSED if name in environ}
    allowed = {name: environ[name] for name in plan.env if name in environ}
    variables = {
        "BYROTE_RUN_ID": run.shown.id,
        "BYROTE_TASK": run.task,
        "BYROTE_ATTEMPT": str(run.shown.attempt),
        "BYROTE_QUEUE": run.shown.queue,
        "BYROTE_SEED": str(_seed(run, plan)),
        "BYROTE_AS_OF_US": str(run.as_of_us),
    }
    if container.passes_descriptors(plan.container):
        variables["BYROTE_RESULT_FD"] = str(RESULT_FD)
    if SEED_LABEL in (run.labels_json or ""):
        variables["BYROTE_SEED_RUN"] = _labels(run).get(SEED_LABEL, run.shown.id)
    if run.traceparent is not None:
        variables["TRACEPARENT"] = run.traceparent
    return passed | FIXED | allowed | variables


def _labels(run: Leased) -> dict[str, str]:
    return {} if run.labels_json is None else json.loads(run.labels_json)


def _seed(run: Leased, plan: Command) -> int:
    return seed_of(run.spec_hash if plan.seed == "spec" else run_digest(run.shown.id, _labels(run)))


def _arguments(run: Leased, plan: Command) -> list[str]:
    match plan.payload:
        case "argv":
            return ["--task-path", run.task, "--payload-json", run.spec_json]
        case "argv-payload":
            return ["--payload", run.spec_json]
        case "file":
            return ["--payload-file", PAYLOAD_FILE]
        case _:
            return []


def _document(run: Leased, plan: Command) -> bytes:
    """Spec and context as one JSON document; the spec is the stored text, byte for byte."""
    context: dict[str, Any] = {
        "run": run.shown.id,
        "attempt": run.shown.attempt,
        "queue": run.shown.queue,
        "labels": _labels(run),
        "timeout_s": None if run.timeout_ms is None else run.timeout_ms / 1000,
        "traceparent": run.traceparent,
        "spec_hash": run.spec_hash.hex(),
        "seed": _seed(run, plan),
        "as_of_us": run.as_of_us,
        "result_fd": RESULT_FD if container.passes_descriptors(plan.container) else None,
    }
    return f'{{"spec":{run.spec_json},"context":{json.dumps(context)}}}\n'.encode()
