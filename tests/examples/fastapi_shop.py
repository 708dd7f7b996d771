# SPDX-License-Identifier: MIT
"""The shop of examples/fastapi_shop as its readers run it: uvicorn and a worker, as processes."""

import gzip
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.examples.smtp import MailServer
from tests.support import until

SHOP = Path(__file__).parents[2] / "examples" / "fastapi_shop"


class HttpSink:
    """A server on 127.0.0.1 that stores its requests; `answers` are its next replies."""

    def __init__(self) -> None:
        self.calls: list[tuple[Mapping[str, str], bytes]] = []
        self.answers: list[int] = []
        sink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                sink.calls.append((dict(self.headers), body))
                self.send_response(sink.answers.pop(0) if sink.answers else 200)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_args: Any) -> None:
                return

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class Shop(NamedTuple):
    """A running shop and the servers around it."""

    env: Mapping[str, str]
    port: int
    mail: MailServer
    warehouse: HttpSink
    sentry: HttpSink
    db: psycopg.Connection[Any]

    def call(
        self, path: str, body: bytes | None = None, kind: str = "application/json"
    ) -> tuple[int, bytes]:
        """Send a request to the web server; POST if there is a body."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", body, {"content-type": kind}
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310 -- our own.
                return reply.status, reply.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def order(self, email: str, sku: str = "tea", quantity: int = 1) -> tuple[int, dict[str, str]]:
        body = {"email": email, "sku": sku, "quantity": quantity}
        status, text = self.call("/orders", json.dumps(body).encode())
        return status, json.loads(text)

    def ended(self, run: str) -> dict[str, Any]:
        """Wait until the status endpoint reports the end of a run."""

        def end() -> dict[str, Any] | None:
            found = json.loads(self.call(f"/runs/{run}")[1])
            return found if found["status"] in ("SUCCESSFUL", "FAILED") else None

        return until(end, within=60)

    def reports(self) -> list[dict[str, Any]]:
        """The errors that Sentry has received."""
        lines = [json.loads(line) for _, body in self.sentry.calls for line in body.splitlines()]
        return [line for line in lines if line.get("level") == "error"]


def python(env: Mapping[str, str], *words: str) -> str:
    """Run Python in the shop's folder; returns its output."""
    done = subprocess.run(
        [sys.executable, *words], cwd=SHOP, env=env, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def sqlalchemy_url(server_url: str, name: str) -> str:
    """The URL of a database, as FastAPI projects write it."""
    parts = conninfo_to_dict(server_url)
    host = quote(str(parts["host"]), safe="")
    port = parts.get("port", 5432)
    secret = f":{quote(str(parts['password']))}" if "password" in parts else ""
    return f"postgresql+asyncpg://{parts['user']}{secret}@/{name}?host={host}&port={port}"


@contextmanager
def new_database(server_url: str, name: str) -> Iterator[str]:
    """An empty database, dropped at the end."""
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"create database {name}".encode())
        yield psycopg.conninfo.make_conninfo(server_url, dbname=name)
        admin.execute(f"drop database {name} with (force)".encode())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def process(env: Mapping[str, str], log: Path, *words: str, stop: int) -> Iterator[None]:
    """Run a Python module in the shop's folder until the block ends, then send the signal."""
    with log.open("wb") as output:
        started = subprocess.Popen(
            [sys.executable, *words], cwd=SHOP, env=env, stdout=output, stderr=output
        )
        try:
            yield
            started.send_signal(stop)
            # uvicorn ends itself by the same signal, once everything is closed.
            assert started.wait(60) in (0, -stop), log.read_text(encoding="utf-8")
        finally:
            started.kill()
            started.wait()


@contextmanager
def running_shop(server_url: str, folder: Path, *, python_path: str = "") -> Iterator[Shop]:
    """The whole shop, migrated; `python_path` is for the worker."""
    mail, warehouse, sentry, port = MailServer(), HttpSink(), HttpSink(), free_port()
    name = f"fastapi_shop_{os.getpid()}_{port}"
    env = {
        **os.environ,
        "DATABASE_URL": sqlalchemy_url(server_url, name),
        "SMTP_SERVER": f"127.0.0.1:{mail.port}",
        "WAREHOUSE_URL": f"http://127.0.0.1:{warehouse.port}/pack",
        "SENTRY_DSN": f"http://key@127.0.0.1:{sentry.port}/1",
        "SHOP_MEDIA": str(folder / "media"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONWARNINGS": "default::ResourceWarning",
    }
    uvicorn = ("-m", "uvicorn", "shop.web:web", "--port", str(port), "--no-access-log")
    worker = ("-m", "byrote.cli.main", "worker", "shop.tasks:app", "--hands", "2")
    with new_database(server_url, name) as plain, psycopg.connect(plain, autocommit=True) as db:
        python(env, "-m", "alembic", "upgrade", "head")
        python(env, "-m", "byrote.cli.main", "migrate")
        db.execute("insert into products values ('tea', 'Tea', 4.95, 50)")
        shop = Shop(env, port, mail, warehouse, sentry, db)
        at_work = {**env, "PYTHONPATH": python_path} if python_path else env
        with (
            # After SIGTERM uvicorn would end before Python warns of connections that are open.
            process(env, folder / "web.log", *uvicorn, stop=signal.SIGINT),
            process(at_work, folder / "worker.log", *worker, stop=signal.SIGTERM),
        ):
            until(lambda: _listens(port), within=60)
            yield shop
    for server in (mail, warehouse, sentry):
        server.close()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
