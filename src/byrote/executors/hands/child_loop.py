# SPDX-License-Identifier: MIT
"""The main loop of a hand: receives jobs from its supervisor and sends results back.

The process is started as `python -m byrote.assembly.hand_main`. It uses an inherited socket and
dies with its supervisor: the kernel sends SIGKILL when the supervisor's thread that started it has
ended (on macOS, a thread polls its parent), and an end of file on the socket ends it too.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from byrote.core.ports.app import AppLike
from byrote.core.ports.executor import OnceStatement
from byrote.core.ports.hooks import StoredAttempt
from byrote.core.replay.withholding import withhold_everywhere
from byrote.executors.framing import Frames, frame
from byrote.executors.hands.crash_report import name_culprits
from byrote.executors.hands.messages import (
    Answer,
    Asked,
    CancelJobs,
    Concurrency,
    Done,
    FinishedRuns,
    RefusedRuns,
    StartWorker,
    Stop,
    StoredAttempts,
    ToHand,
    Work,
    WorkerHooksCalled,
    decode_to_hand,
)
from byrote.executors.hooks.registered import hooks_of
from byrote.executors.hooks.runner import HookFailed, HookRunner
from byrote.executors.runtime.asks import AskClient
from byrote.executors.runtime.async_hands import note_async_hands
from byrote.executors.runtime.engine import Engine
from byrote.executors.runtime.failure_log import FailureLog, OnRaised, both
from byrote.executors.runtime.job import Result
from byrote.executors.runtime.loading import introduction
from byrote.executors.runtime.provenance.git import GitCheckout
from byrote.executors.runtime.seeding import notice_numpy
from byrote.executors.shared.board import Board
from byrote.executors.shared.messages import Question
from byrote.executors.shared.results import Results

EXIT_CANNOT_START = 3
PIECE = 1 << 18


def refuse(link: socket.socket, reason: str, traceback: str = "") -> None:
    """Send the supervisor the reason why this hand cannot start, and exit."""
    link.sendall(frame(RefusedRuns(reason, traceback)))
    os._exit(EXIT_CANNOT_START)


class Hand:
    """One hand at work."""

    def __init__(
        self,
        link: socket.socket,
        app: AppLike,
        settings: dict[str, Any],
        *,
        checkout: GitCheckout,
        once: OnceStatement,
    ) -> None:
        self._link = link
        self._once = once
        self._app = app
        self._checkout = checkout
        self._settings = settings
        self._frames = Frames(decode_to_hand)
        # Results of at most SLOTS jobs, and the asks of tasks, which wait for the answers.
        self._unsent = bytearray()
        self._stopped = asyncio.Event()
        self._hooks: HookRunner | None = None
        self._ends_worker = False
        """Whether this hand calls the hooks of the worker's stop."""
        self._starting: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        """Send the introduction, then execute jobs until the supervisor sends `Stop`."""
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._link.setblocking(False)
        self._ask_client = AskClient(self._ask, self._once, self._settings.get("replay"))
        board = Board(self._settings["board"])
        name_culprits(board, self._settings["report"])
        if self._ask_client.replay is not None:
            withhold_everywhere()
        await self._start_hooks()
        self._engine = Engine(
            self._app.registry,
            board,
            self._deliver,
            concurrency=self._settings["concurrency"],
            threads=self._settings["threads"],
            ask_client=self._ask_client,
            keep=Results(*self._settings["results"]).keep,
            failures=self._failures(),
        )
        wants = None if self._hooks is None else self._hooks.wants
        self._send(frame(["ready", introduction(self._app, self._checkout, wants)]))
        loop.add_reader(self._link.fileno(), self._receive)
        await self._stopped.wait()
        loop.remove_reader(self._link.fileno())
        self._engine.close()
        if self._hooks is not None:
            await self._hooks.close(worker=self._ends_worker)
        self._app.flush()
        self._link.setblocking(True)
        self._link.sendall(self._unsent)

    async def _start_hooks(self) -> None:
        """Call the start hooks of the hand; one that raises keeps it from starting."""
        hooks = hooks_of(self._app)
        if hooks is None:
            return
        self._hooks = HookRunner(hooks, replaying=self._ask_client.replay is not None)
        try:
            await self._hooks.start_hand()
        except HookFailed as error:
            self._link.setblocking(True)
            refuse(self._link, str(error), error.traceback)

    async def _start_worker(self) -> None:
        """Call the start hooks of the worker, and report to the supervisor."""
        called = WorkerHooksCalled()
        if self._hooks is not None:
            try:
                await self._hooks.start_worker()
            except HookFailed as error:
                called = WorkerHooksCalled(str(error), error.traceback)
        self._send(frame(called))

    def _failures(self) -> OnRaised | None:
        """Return what takes failed attempts; a replay has nothing that does."""
        if self._ask_client.replay is not None:
            return None
        tracebacks = self._settings["log_tracebacks"]
        log = FailureLog(tracebacks=tracebacks, ends=not self._app.logs_failures)
        return both(log, None if self._hooks is None else self._hooks.failed)

    def _receive(self) -> None:
        try:
            piece = self._link.recv(PIECE)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if not piece:
            os._exit(0)
        for message in self._frames.feed(piece):
            self._heed(message)

    def _heed(self, message: ToHand) -> None:
        match message:
            case Work():
                self._engine.put(message.jobs)
            case Answer():
                self._ask_client.answer(message.number, message.ok, message.payload)
            case CancelJobs():
                self._engine.cancel(message.slots)
            case Concurrency():
                note_async_hands(message.hands)
                self._engine.limit(message.limit)
            case FinishedRuns():
                self._report_finished(message.runs)
            case StoredAttempts():
                self._report_stored(message.attempts)
            case StartWorker():
                self._starting = self._loop.create_task(self._start_worker())
            case Stop():
                self._ends_worker = message.worker
                self._stopped.set()
            case _:
                assert_never(message)

    def _report_finished(self, runs: Sequence[Any]) -> None:
        if self._app.on_finished is not None:
            self._app.on_finished(runs)

    def _report_stored(self, attempts: Sequence[StoredAttempt]) -> None:
        if self._hooks is not None:
            self._hooks.stored(attempts)

    def _deliver(self, results: list[Result]) -> None:
        # A task may have just imported numpy; one check per batch costs nothing.
        notice_numpy()
        self._send(frame(Done(results)))

    def _ask(self, slot: int, number: int, verb: str, payload: Mapping[str, Any]) -> None:
        # Only the loop's thread writes to the socket.
        piece = frame(Asked(Question(slot, number, verb, dict(payload))))
        self._loop.call_soon_threadsafe(self._send, piece)

    def _send(self, piece: bytes) -> None:
        if self._unsent:
            self._unsent += piece
            return
        sent = 0
        with contextlib.suppress(BlockingIOError):
            sent = self._link.send(piece)
        if sent < len(piece):
            self._unsent += piece[sent:]
            self._loop.add_writer(self._link.fileno(), self._send_more)

    def _send_more(self) -> None:
        with contextlib.suppress(BlockingIOError):
            del self._unsent[: self._link.send(self._unsent)]
        if not self._unsent:
            self._loop.remove_writer(self._link.fileno())
