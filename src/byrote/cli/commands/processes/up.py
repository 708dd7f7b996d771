# SPDX-License-Identifier: MIT
"""`byrote up`: everything on one machine, in one command, and nothing left behind."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from queue import Empty, SimpleQueue
from types import FrameType

import click
import psycopg

from byrote.assembly.identity import jitter, new_id, new_secret
from byrote.cli.database import address_at, check, masked, open_url
from byrote.cli.errors import FAILED
from byrote.cli.options import url_option
from byrote.core.errors import ByroteError
from byrote.core.text.ids import token_digest
from byrote.core.text.printable import one_line
from byrote.store import queries
from byrote.store.migrate import migrate
from byrote.store.runners.sync import Store

SIGNALS_S = 0.5
"""How long the main thread waits at a time; signals are handled between two waits."""
STOP_S = 40.0
"""How long a part may take to stop before it is killed: longer than a worker's grace."""
TOKEN_FOR = timedelta(minutes=10)
"""How long the token outlives a command that was killed; until then it is extended."""
EXTEND_S = 60.0


@click.command(epilog="Example: byrote up shop.tasks:app")
@click.argument("app", metavar="[MODULE:APP]", required=False)
@url_option
@click.option("--port", type=click.IntRange(1, 65_535), default=8700, show_default=True)
@click.option(
    "-Q",
    "--queues",
    metavar="A,B=3",
    help="Queues of the worker, with weights; default: those of its tasks.",
)
def up(*, app: str | None, url: str | None, port: int, queues: str | None) -> None:
    """Run PostgreSQL, the service and a worker on this machine until Ctrl-C.

    Uses the configured database, else an embedded server, and migrates it. Prints a token for the
    service that expires with this command, or minutes later if the command is killed. Without an
    app no worker is started: other workers may claim over HTTP. Log lines begin with the name of
    their part. When one part ends, all are stopped.
    """
    with open_url(url, or_embedded=True) as found:
        address = address_at(found, pooled=False)
        migrate(address, jitter=jitter)
        with contextlib.closing(Store(address, jitter=jitter)) as store, _token(store) as secret:
            check(store)
            parts = _commands(app, port=port, queues=queues)
            _banner(found, secret, parts, port=port)
            failed = _run(parts, {**os.environ, "BYROTE_DATABASE_URL": found})
    if failed:
        raise click.exceptions.Exit(FAILED)


@contextlib.contextmanager
def _token(store: Store) -> Iterator[str]:
    secret, token_id = new_secret(), new_id()
    store.all(
        queries.create_token(
            id=token_id,
            digest=token_digest(secret),
            name="up",
            role="admin",
            queues=["*"],
            tasks=["*"],
            expires=TOKEN_FOR,
        )
    )
    done = threading.Event()

    def extend() -> None:
        while not done.wait(EXTEND_S):
            # If the database is unreachable, the next try is in a minute.
            with contextlib.suppress(ByroteError, psycopg.Error):
                store.all(queries.extend_token(token_id, expires=TOKEN_FOR))

    thread = threading.Thread(target=extend, name="byrote-token", daemon=True)
    thread.start()
    try:
        yield secret
    finally:
        done.set()
        thread.join()
        store.all(queries.revoke_token(token_id))


def _commands(app: str | None, *, port: int, queues: str | None) -> dict[str, list[str]]:
    """The parts, in the order in which they are stopped."""
    ours = [sys.executable, "-m", "byrote.cli.support.child_command", str(os.getpid())]
    parts: dict[str, list[str]] = {}
    if app is not None:
        parts["worker"] = [*ours, "worker", app, *(["--queues", queues] if queues else [])]
    parts["service"] = [*ours, "serve", "--port", str(port)]
    return parts


def _banner(url: str, secret: str, parts: Mapping[str, Sequence[str]], *, port: int) -> None:
    click.echo(
        f"\n  Byrote is up: {', '.join(parts)}\n\n"
        f"  database  {masked(url)}\n"
        f"  service   http://127.0.0.1:{port}\n"
        f"  token     {secret}\n\n"
        f"  curl -H 'Authorization: Bearer {secret}' http://127.0.0.1:{port}/v1/queues\n"
        "  byrote top        in another terminal\n\n"
        "  Ctrl-C stops everything.\n"
    )


def _run(parts: Mapping[str, Sequence[str]], environ: Mapping[str, str]) -> bool:
    """Run the parts until a signal arrives or one part ends; returns whether one ended."""
    news: SimpleQueue[str] = SimpleQueue()

    def on_signal(number: int, _frame: FrameType | None) -> None:
        news.put(signal.Signals(number).name)

    handled = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, on_signal) for number in handled}
    running: dict[str, subprocess.Popen[str]] = {}
    try:
        for name, command in parts.items():
            running[name] = _start(name, command, environ, news)
        return _first(news).startswith("ended")
    finally:
        for name, process in running.items():
            _stop(name, process)
        for number, handler in before.items():
            signal.signal(number, handler)
        with contextlib.suppress(Empty):
            while True:
                news.get_nowait()


def _first(news: SimpleQueue[str]) -> str:
    """Wait for the first message in short waits; signals are handled between two waits."""
    while True:
        with contextlib.suppress(Empty):
            return news.get(timeout=SIGNALS_S)


def _start(
    name: str, command: Sequence[str], environ: Mapping[str, str], news: SimpleQueue[str]
) -> subprocess.Popen[str]:
    process = subprocess.Popen(  # noqa: S603 -- our own commands.
        list(command),
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        # Ctrl-C reaches only this process, which stops the parts in order.
        start_new_session=True,
    )

    def pass_on() -> None:
        assert process.stdout is not None  # noqa: S101 -- asked for above.
        for line in process.stdout:
            click.echo(f"{name:<8}| {one_line(line.rstrip())}")
        news.put(f"ended {name}")

    threading.Thread(target=pass_on, name=f"byrote-log-{name}", daemon=True).start()
    return process


def _stop(name: str, process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    click.echo(f"{name:<8}| stopped with code {process.returncode}")
