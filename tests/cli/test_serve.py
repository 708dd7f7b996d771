# SPDX-License-Identifier: MIT
"""`byrote serve` and `byrote up` as a user starts and stops them."""

import re
import signal
import ssl
import subprocess
from datetime import timedelta
from pathlib import Path

import httpx2
import psycopg
import pytest

from byrote.cli.commands.processes import up as up_command
from byrote.store.runners.sync import Store
from tests.cli.console import NOBODY, Process, byrote
from tests.service.processes import free_port
from tests.support import Db, until

TOKEN = re.compile(r"byr_[\w-]{43}")


def answers(port: int, token: str, path: str = "/readyz") -> bool:
    headers = {"authorization": f"Bearer {token}"}
    try:
        return httpx2.get(f"http://127.0.0.1:{port}{path}", headers=headers).status_code == 200
    except httpx2.TransportError:
        return False


def test_it_listens_off_this_machine_with_tls_only(url: str) -> None:
    said = byrote("serve", "--host", "0.0.0.0", url=url)  # noqa: S104 -- the point.

    assert said.code == 2
    assert "--tls-cert" in said.err
    assert byrote("serve", "--tls-cert", __file__, url=url).code == 2


@pytest.mark.needs("openssl")
def test_it_speaks_tls(url: str, tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
        capture_output=True, check=True,
    )  # fmt: skip
    port = free_port()
    with Process("serve", "--port", str(port), "--tls-cert", str(cert), "--tls-key", str(key),
                 url=url, folder=tmp_path) as served:  # fmt: skip
        served.wrote("startup complete")
        context = ssl.create_default_context(cafile=str(cert))
        with httpx2.Client(verify=context) as client:
            until(lambda: client.get(f"https://127.0.0.1:{port}/livez").status_code == 200)
        served.signal(signal.SIGTERM)

        assert served.ended().code == 0


def test_a_database_that_is_down_is_reported_at_once(tmp_path: Path) -> None:
    assert byrote("serve", url=NOBODY).code == 75


def test_everything_comes_up_and_goes_down_together(url: str, tmp_path: Path) -> None:
    port = free_port()
    with Process("up", "byrote.demo.tasks:app", "--port", str(port), url=url,
                 folder=tmp_path) as up:  # fmt: skip
        up.wrote("WorkerStarted")
        token = TOKEN.search("".join(up.out))
        assert token is not None
        until(lambda: answers(port, token[0]))
        place = f"http://127.0.0.1:{port}"
        top = byrote("top", "--once", "--service", place, BYROTE_SERVICE_TOKEN=token[0])
        refused = byrote("top", "--once", "--service", place)
        up.signal(signal.SIGINT)
        said = up.ended()

    assert (top.code, top.err) == (0, "")
    assert refused.code != 0
    assert said.code == 0
    assert re.search(r"^worker\s*\| stopped with code 0$", said.out, re.MULTILINE)
    assert re.search(r"^service\s*\| stopped with code 0$", said.out, re.MULTILINE)
    assert not answers(port, token[0])
    with psycopg.connect(url) as db:
        left = db.execute("select count(*) from byrote_tokens where revoked_at is null")
        assert left.fetchone() == (0,)
        assert db.execute("select count(*) from byrote_workers").fetchone() == (0,)


def test_what_is_killed_leaves_no_parts_and_no_lasting_token(url: str, tmp_path: Path) -> None:
    port = free_port()
    with Process("up", "byrote.demo.tasks:app", "--port", str(port), url=url,
                 folder=tmp_path) as up:  # fmt: skip
        up.wrote("WorkerStarted")
        token = TOKEN.search("".join(up.out))
        assert token is not None
        until(lambda: answers(port, token[0]))
        parts = children(up.pid)
        up.signal(signal.SIGKILL)
        until(lambda: not any(map(alive, parts)))
    with psycopg.connect(url) as db:
        text = "select expires_at - now() from byrote_tokens where revoked_at is null"
        [[left]] = db.execute(text).fetchall()

    assert len(parts) == 2
    assert not answers(port, token[0])
    assert left <= timedelta(minutes=10)


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in text.split()]


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_the_token_holds_as_long_as_the_command_runs(
    store: Store, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up_command, "EXTEND_S", 0.05)
    with up_command._token(store):
        db.execute("update byrote_tokens set expires_at = now()")
        until(lambda: db.execute("select expires_at > now() from byrote_tokens").fetchall()[0][0])

    assert db.execute("select revoked_at is not null from byrote_tokens").fetchall() == [(True,)]


def test_when_a_part_ends_all_are_stopped(url: str, tmp_path: Path) -> None:
    with Process("up", "no.such.module:app", "--port", str(free_port()), url=url,
                 folder=tmp_path) as up:  # fmt: skip
        said = up.ended()

    assert said.code == 1
    assert "service " in said.out


def test_top_reads_the_database_and_names_the_service_that_did_not_answer(url: str) -> None:
    looked = byrote("top", "--once", "--json", url=url)

    assert looked.object["stats"]["queues"] == []
    assert byrote("top", "--once", url=url).code == 0
    gone = byrote("top", "--once", "--service", "http://127.0.0.1:1")
    assert gone.code == 1
    assert "did not answer" in gone.err
