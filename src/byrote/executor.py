# SPDX-License-Identifier: MIT
"""`python -m byrote.executor --app module:app`: executes one document, writes the result, exits.

The protocol is described in docs/reference/executor-protocol.md. Exit codes: 0 when a result was
written, also for a failure; 2 when the command line or the document is invalid, or the app cannot
be imported.
"""

import argparse
import asyncio
import importlib
import io
import os
import socket
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from byrote.assembly.once import once
from byrote.core.errors import ByroteError
from byrote.core.json.codec import digest_of
from byrote.core.json.seed import SEED_LABEL
from byrote.core.outcome import Fault
from byrote.core.replay.withholding import withhold_everywhere
from byrote.executors.commands.ask_socket import PIECE, REPLAY, VARIABLE
from byrote.executors.framing import Frames, frame
from byrote.executors.runtime import call
from byrote.executors.runtime.asks import AskClient, ReplayMode
from byrote.executors.runtime.job import (
    CrashedResult,
    Job,
    RaisedResult,
    ReleasedResult,
    Result,
    ReturnedResult,
    SnoozedResult,
)
from byrote.executors.runtime.loading import introduction, load_app
from byrote.executors.runtime.output import AttemptScope, open_scope
from byrote.executors.runtime.provenance.git import GitCheckout
from byrote.executors.runtime.seeding import install
from byrote.executors.runtime.steps.branches import count_branches
from byrote.executors.runtime.steps.call import current_step

BAD_CALL = 2


class _Spec(msgspec.Struct):
    task: str
    version: int = 1


class _Context(msgspec.Struct):
    run: str = ""
    attempt: int = 1
    queue: str = "default"
    labels: dict[str, str] = {}
    timeout_s: float | None = None
    traceparent: str | None = None
    as_of_us: int = 0


class _Document(msgspec.Struct):
    spec: msgspec.Raw
    context: _Context = msgspec.field(default_factory=_Context)


def main() -> None:
    """Execute one attempt, or describe the app."""
    wanted = _arguments()
    checkout = GitCheckout(Path.cwd()) if wanted.describe else None
    try:
        # Before the app is imported: its output must not end up in the result.
        answer = _answer_fd()
        job = None if wanted.describe else _job(_document(wanted))
        _set_up_django()
        install()
        app = load_app(wanted.app)
    except (ByroteError, msgspec.DecodeError, OSError, UnicodeError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(BAD_CALL)
    if checkout is not None:
        _write(answer, msgspec.json.encode(introduction(app, checkout)))
    elif job is not None:
        _write(answer, envelope_of(execute(app, job)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m byrote.executor", description=__doc__)
    parser.add_argument("--app", required=True, metavar="MODULE:APP")
    parser.add_argument("--describe", action="store_true", help="print the app's tasks as JSON")
    parser.add_argument("--payload-file", metavar="PATH", help="the document, in a file")
    parser.add_argument("--payload-json", "--payload", metavar="JSON", help="the spec itself")
    parser.add_argument("--task-path", metavar="NAME", help="sent with --payload-json; not needed")
    return parser.parse_args()


def _document(wanted: argparse.Namespace) -> _Document:
    if wanted.payload_json is not None:
        environ = os.environ
        context = _Context(
            run=environ.get("BYROTE_RUN_ID", ""),
            attempt=int(environ.get("BYROTE_ATTEMPT", "1")),
            queue=environ.get("BYROTE_QUEUE", "default"),
            traceparent=environ.get("TRACEPARENT"),
            as_of_us=int(environ.get("BYROTE_AS_OF_US", "0")),
            labels={SEED_LABEL: seed} if (seed := environ.get("BYROTE_SEED_RUN")) else {},
        )
        return _Document(msgspec.Raw(wanted.payload_json.encode()), context)
    if wanted.payload_file is not None:
        return msgspec.json.decode(Path(wanted.payload_file).read_bytes(), type=_Document)
    return msgspec.json.decode(sys.stdin.buffer.read(), type=_Document)


def _set_up_django() -> None:
    if os.environ.get("DJANGO_SETTINGS_MODULE"):
        importlib.import_module("django").setup()


def _job(document: _Document) -> Job:
    spec = msgspec.json.decode(document.spec, type=_Spec)
    context = document.context
    return Job(
        0,
        context.run,
        spec.task,
        spec.version,
        bytes(document.spec).decode(),
        context.attempt,
        None if context.timeout_s is None else int(context.timeout_s * 1000),
        context.queue,
        msgspec.json.encode(context.labels).decode(),
        context.traceparent,
        float("inf"),  # The worker checks whether the lease still holds.
        digest_of(bytes(document.spec)),
        context.as_of_us,
    )


def execute(app: Any, job: Job) -> Result:
    """Run one attempt."""
    install(task.key for task in app.registry.served if not task.deterministic)
    open_scope(AttemptScope(job))
    wanted = f"{job.task}@{job.version}"
    if any(task.is_async for task in app.registry.served if task.key == wanted):
        return asyncio.run(_attempt(app, job))
    return call.call_sync(app.registry, job, open_ask_client())


async def _attempt(app: Any, job: Job) -> Result:
    count_branches(asyncio.get_running_loop(), current_step)
    try:
        return await call.call_async(app.registry, job, open_ask_client())
    except asyncio.CancelledError as error:
        # This process cancels no task: it cancelled itself, which is a failure like any other.
        return call.raised(job.slot, error)


def envelope_of(result: Result) -> bytes:
    """The envelope of a result."""
    match result:
        case ReturnedResult(text=text):
            return f'{{"ok":true,"result":{text}}}'.encode()
        case RaisedResult(fault=fault, after_us=after_us, final=final):
            answer: dict[str, Any] = {"ok": False, "error": _error_of(fault), "fatal": final}
            answer["retry_after"] = None if after_us is None else after_us / 1e6
        case SnoozedResult(after_us=after_us, wait=str(wait), event=event):
            answer = {"snooze": after_us / 1e6, "wait": wait, "event": event}
        case SnoozedResult(after_us=after_us):
            answer = {"snooze": after_us / 1e6}
        case CrashedResult(fault=fault):
            # An envelope cannot express a disruption: a command's attempt is charged.
            answer = {"ok": False, "error": _error_of(fault)}
        case ReleasedResult():
            error = {"type": "LeaseLost", "message": "The worker does not answer any more."}
            answer = {"ok": False, "error": error}
        case _:
            raise ValueError(f"An attempt by itself does not end like this: {result!r}")
    return msgspec.json.encode(answer)


def _error_of(fault: Fault) -> dict[str, Any]:
    # Encoding a fault leaves out an empty message; the protocol always has one.
    return {"message": "", **msgspec.to_builtins(fault)}


def _answer_fd() -> int:
    """The descriptor for the result, else stdout; all other output then goes to stderr."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Output that was printed before a signal arrives must not be lost in a buffer.
        sys.stdout.reconfigure(line_buffering=True)
    offered = os.environ.pop("BYROTE_RESULT_FD", None)
    if offered is not None and offered.isdigit():
        fd = int(offered)
        os.set_inheritable(fd, False)
        return fd
    fd = os.dup(1)
    os.dup2(2, 1)
    return fd


def _write(fd: int, answer: bytes) -> None:
    sys.stdout.flush()
    view = memoryview(answer + b"\n")
    while view:
        view = view[os.write(fd, view) :]
    sys.stderr.flush()
    # Threads and exit handlers of the task must not delay the end after the result.
    os._exit(0)


def open_ask_client() -> AskClient | None:
    """The client for asks, if the worker offers a socket; its own thread receives the answers.

    Called on the loop of an async task, the client refuses calls that would block that loop.
    """
    offered = os.environ.pop(VARIABLE, "")
    if not offered.isdigit():
        return None
    replay = msgspec.convert(os.environ.pop(REPLAY, None), ReplayMode | None)
    if replay is not None:
        withhold_everywhere()
    link = socket.socket(fileno=int(offered))
    link.set_inheritable(False)
    turn = threading.Lock()

    def send(slot: int, number: int, verb: str, payload: Mapping[str, Any]) -> None:
        with turn:
            link.sendall(frame(["ask", [slot, number, verb, payload]]))

    async def make() -> AskClient:
        return AskClient(send, once, replay)

    try:
        asyncio.get_running_loop()
        ask_client = AskClient(send, once, replay)
    except RuntimeError:
        ask_client = asyncio.run(make())
    threading.Thread(
        target=_receive, args=(link, ask_client), name="byrote-answers", daemon=True
    ).start()
    return ask_client


def _receive(link: socket.socket, ask_client: AskClient) -> None:
    frames: Frames[object] = Frames()
    try:
        while piece := link.recv(PIECE):
            for message in frames.feed(piece):
                match message:
                    case ["answer", _slot, int(number), bool(ok), payload]:
                        ask_client.answer(number, ok, payload)
    except OSError:
        pass
    # No more answers will arrive: open asks are answered as for a lost lease.
    ask_client.close()


if __name__ == "__main__":
    main()
