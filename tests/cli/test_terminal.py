# SPDX-License-Identifier: MIT
import os
import pty
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psycopg

from tests.cli.console import byrote
from tests.support import enqueue

Database = psycopg.Connection[Any]


def on_a_terminal(*words: str, url: str, stdin: bytes = b"", **env: str) -> str:
    """What a command writes to a terminal, on both outputs."""
    ours, theirs = pty.openpty()
    given = {**os.environ, "BYROTE_DATABASE_URL": url, "TERM": "xterm", **env}
    command = [sys.executable, "-m", "byrote.cli.main", *words]
    with subprocess.Popen(
        command, env=given, stdin=subprocess.PIPE, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        watch = threading.Timer(60, process.kill)
        watch.start()
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
        written = b"".join(iter(lambda: _read(ours), b""))
        watch.cancel()
    os.close(ours)
    return written.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux raises it when the other end is closed.
        return b""


def test_a_terminal_gets_colours(url: str, db: Database) -> None:
    enqueue(db)

    assert "\x1b[34mREADY" in on_a_terminal("runs", "list", url=url)


def test_no_color_is_respected(url: str, db: Database) -> None:
    enqueue(db)
    written = on_a_terminal("runs", "list", url=url, NO_COLOR="1")

    assert "READY" in written
    assert "\x1b" not in written


def test_a_pipe_gets_no_colours(url: str, db: Database) -> None:
    enqueue(db)

    assert "\x1b" not in byrote("runs", "list", url=url).out


def test_many_lines_show_their_progress_on_a_terminal(url: str) -> None:
    written = on_a_terminal("enqueue", "t", "--many", "-", url=url, stdin=b"{}\n" * 2_001)

    assert "lines read" in written
    assert "1000" in written
    assert "2,001 runs accepted." in written


def test_a_worker_on_a_terminal_logs_text(url: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from byrote import App\napp = App()\n\n@app.task\ndef nop(): ...\n"
    )
    words = ("worker", "shop:app", "--drain", "--executor", "inline")
    written = on_a_terminal(*words, url=url, PYTHONPATH=str(tmp_path))

    assert " WorkerStarted " in written
    assert '{"at"' not in written


def test_enqueue_on_a_terminal_names_the_database_without_its_password(
    url: str, db: Database
) -> None:
    secret = psycopg.conninfo.make_conninfo(url, password="s3cret")  # noqa: S106 -- not one.
    written = on_a_terminal("enqueue", "double", url=secret)

    assert f"/{db.info.dbname} as {db.info.user}" in written
    assert "s3cret" not in written
    assert "database" not in byrote("enqueue", "double", url=secret).err
