# SPDX-License-Identifier: MIT
"""Workers on a simulated Mac: hands end with their supervisor, commands wait for Linux."""

import os
import resource
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from byrote.core.state import Status
from byrote.embedded.server import open_server
from byrote.system.memory import rss_max_bytes
from tests.support import run_of, until
from tests.worker import harness
from tests.worker.harness import (
    Database,
    Marks,
    StartWorker,
    alive,
    await_end,
    marks,  # noqa: F401 -- a fixture.
    send_one,
    spec,
    start_worker,  # noqa: F401 -- a fixture.
)

MAC_LIKE = Path(__file__).parent / "mac_like"
SUN_PATH_MAX = 103
"""Bytes of a socket's path on macOS, without the closing zero."""


@pytest.fixture(autouse=True)
def mac(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the workers of this test on a simulated Mac."""
    monkeypatch.setattr(harness, "PATH", os.pathsep.join([str(MAC_LIKE), harness.PATH]))


def test_idle_hands_end_with_a_killed_supervisor(start_worker: StartWorker) -> None:  # noqa: F811
    worker = start_worker("tests.tasks.crashes:app", hands=2)
    until(lambda: len(worker.hands) == 2)
    hands = worker.hands
    worker.signal(signal.SIGKILL)
    worker.wait()

    until(lambda: not any(map(alive, hands)), 15.0, f"one of {hands} survived")


@pytest.mark.parametrize("call", [("slow", 600.0), ("stuck_in_c", None)], ids=str)
def test_busy_hands_end_with_a_killed_supervisor(
    db: Database,
    start_worker: StartWorker,  # noqa: F811
    marks: Marks,  # noqa: F811
    call: tuple[str, float | None],
) -> None:
    """Also a hand whose other threads cannot run: a task holds the GIL in C code."""
    worker = start_worker("tests.tasks.crashes:app", hands=1)
    task, seconds = call
    send_one(db, spec(task, marks.path, *([] if seconds is None else [seconds])))
    hand = int(marks.await_words(1)[0])
    worker.signal(signal.SIGKILL)
    worker.wait()

    until(lambda: not alive(hand), 15.0, f"{hand} survived")


@pytest.mark.parametrize("executor", ["hand", "inline"])
def test_commands_wait_for_linux_and_other_tasks_are_served(
    db: Database,
    start_worker: StartWorker,  # noqa: F811
    executor: str,
) -> None:
    worker = start_worker("tests.executors.runtime.printing:app", executor=executor)
    command, other = send_one(db, spec("shell")), send_one(db, spec("silent"))
    [done] = await_end(db, other)

    assert done.status is Status.SUCCESSFUL
    assert run_of(db, command).status is Status.READY
    assert "shell@1" in worker.await_log("CommandsLeftOut")["tasks"]


def test_an_app_of_commands_alone_is_refused(start_worker: StartWorker) -> None:  # noqa: F811
    worker = start_worker("tests.executors.commands.only_commands:app", ready=False)

    assert worker.wait(30.0) == 2
    assert "Commands need Linux" in worker.text


@pytest.mark.parametrize(("platform", "unit"), [("darwin", 1), ("linux", 1024)])
def test_peak_memory_is_in_bytes(monkeypatch: pytest.MonkeyPatch, platform: str, unit: int) -> None:
    """macOS counts bytes, Linux KiB."""
    monkeypatch.setattr(sys, "platform", platform)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = rss_max_bytes()

    assert before * unit <= found <= 2 * before * unit


def test_a_long_temporary_directory_keeps_the_socket_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """macOS has long ones, and 104 bytes for the path of a socket."""
    with tempfile.TemporaryDirectory(prefix="byrote-long-") as top:
        Path(top).chmod(0o755)
        long = Path(top) / ("d" * 110)
        long.mkdir(mode=0o755)
        monkeypatch.setattr(tempfile, "tempdir", str(long))
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
        home = Path(top) / "home"
        with open_server(home, environ=os.environ, durable=False) as server:
            socket = server.socket_dir / ".s.PGSQL.5432"

            assert socket.is_socket()
        assert len(os.fsencode(socket)) <= SUN_PATH_MAX < len(os.fsencode(long / socket.name))
