# SPDX-License-Identifier: MIT
"""Files over HTTP: streamed, bounded, kept once, and only for the holder of the lease."""

import contextlib
import hashlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from byrote.assembly.artifacts import artifact_of
from byrote.core.text.ids import token_digest
from byrote.service.http import auth
from byrote.service.options import ServiceOptions
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import Store
from tests.service.harness import (
    Served,
    claim_one,
    enqueue_one,
    finish_one,
    make_token,
    problem,
    serving,
)
from tests.support import Db, count, until

LARGE = bytes(range(256)) * 8_192
"""Two megabytes."""
LIMIT = 3 << 20


@pytest.fixture
def keeping(address: DatabaseAddress, store: Store, tmp_path: Path) -> Iterator[Served]:
    """A service that takes files of up to three megabytes."""
    place = str(tmp_path / "artifacts")
    options = ServiceOptions(artifacts=place, artifact_max=LIMIT, uploads=1, body_s=0.5)
    with serving(address, store, options) as running:
        yield running


@pytest.fixture
def client(keeping: Served) -> Iterator[httpx2.Client]:
    with keeping.client("admin") as made:
        yield made


@pytest.fixture
def lease(client: httpx2.Client) -> dict[str, Any]:
    enqueue_one(client)
    return claim_one(client)


def put(client: httpx2.Client, lease: dict[str, Any], content: Any, **more: str) -> httpx2.Response:
    query = {"run": lease["run"], "name": "a.bin", **more}
    return client.put(f"/v1/leases/{lease['token']}/artifacts", content=content, params=query)


def files(place: Path) -> list[Path]:
    return [path for path in place.rglob("*") if path.is_file()]


def test_a_large_file_comes_back_as_it_was_sent(
    client: httpx2.Client, lease: dict[str, Any], store: Store, tmp_path: Path
) -> None:
    digest = hashlib.sha256(LARGE).hexdigest()
    pieces = (LARGE[at : at + 50_000] for at in range(0, len(LARGE), 50_000))
    kept = put(client, lease, pieces, media_type="text/csv", sha256=digest).json()
    again = put(client, lease, LARGE, sha256=digest).json()
    found = artifact_of(store, lease["run"], "a.bin")

    assert (kept["verdict"], again["verdict"]) == ("stored", "same")
    assert found.read() == LARGE
    assert (found.hash, found.size, found.media_type) == (digest, len(LARGE), "text/csv")
    assert len(files(tmp_path / "artifacts")) == 1


def test_a_small_file_is_stored_in_the_database(
    client: httpx2.Client, lease: dict[str, Any], store: Store, db: Db
) -> None:
    put(client, lease, b"small").raise_for_status()

    assert artifact_of(store, lease["run"], "a.bin").read() == b"small"
    assert count(db, "byrote_artifact_blobs") == 1


def test_only_the_holder_of_the_lease_can_write(
    client: httpx2.Client, lease: dict[str, Any], db: Db
) -> None:
    finish_one(client, lease, result=1)

    assert put(client, lease, LARGE).json()["verdict"] == "lost"
    assert count(db, "byrote_artifacts") == 0


@pytest.mark.parametrize("streamed", [False, True], ids=["with-a-length", "without"])
def test_a_file_over_the_limit_is_refused(
    client: httpx2.Client, lease: dict[str, Any], db: Db, streamed: bool
) -> None:
    piece = bytes(LIMIT // 4)
    content: Any = (piece for _ in range(5)) if streamed else piece * 5
    refused = put(client, lease, content)

    assert "3,145,728 bytes" in problem(refused, 413, "too_large")["detail"]
    assert client.get("/v1/leases/artifacts").json() == {"size_max": LIMIT}
    assert count(db, "byrote_artifacts") == 0


def test_a_content_that_is_not_what_was_meant_is_refused(
    client: httpx2.Client, lease: dict[str, Any], db: Db
) -> None:
    wrong = put(client, lease, b"other", sha256=hashlib.sha256(b"one").hexdigest())

    problem(wrong, 422, "invalid")
    problem(put(client, lease, b"x", name="../../etc"), 400, "refused")
    problem(put(client, lease, b"x", media_type="no"), 400, "refused")
    assert count(db, "byrote_artifacts") == 0


def test_a_sender_that_stops_midway_makes_way_for_others(
    keeping: Served, client: httpx2.Client, lease: dict[str, Any]
) -> None:
    done = threading.Event()

    def slow() -> Iterator[bytes]:
        yield LARGE  # As fast as it may be: only the pause is too long.
        done.wait(60)

    with keeping.client("admin") as other:
        answers: list[httpx2.Response] = []
        thread = threading.Thread(target=lambda: answers.append(put(other, lease, slow())))
        thread.start()
        until(lambda: keeping.service.uploads.used == 1)
        busy = put(client, lease, LARGE)
        try:
            until(lambda: keeping.service.uploads.used == 0, within=15)
        finally:
            done.set()
        thread.join()

    problem(busy, 503, "unavailable")
    problem(answers[0], 408, "too_slow")
    assert put(client, lease, LARGE).json()["verdict"] == "stored"


def test_a_service_without_a_place_takes_small_files_only(admin: httpx2.Client) -> None:
    enqueue_one(admin)
    lease = claim_one(admin)

    assert put(admin, lease, b"x").json()["verdict"] == "stored"
    problem(put(admin, lease, LARGE, name="b.bin"), 413, "too_large")


def get(client: httpx2.Client, lease: dict[str, Any], content: bytes) -> httpx2.Response:
    digest = hashlib.sha256(content).hexdigest()
    return client.get(f"/v1/runs/{lease['run']}/artifacts/{digest}")


@pytest.mark.parametrize("content", [b"", b"small", LARGE], ids=["empty", "small", "large"])
def test_what_was_stored_is_given_back_by_its_hash(
    client: httpx2.Client, lease: dict[str, Any], content: bytes
) -> None:
    put(client, lease, content, media_type="text/html").raise_for_status()
    got = get(client, lease, content)

    assert got.content == content
    # A page that a task has made is not shown as if it were the service's.
    assert got.headers["content-type"] == "application/octet-stream"
    assert got.headers["x-content-type-options"] == "nosniff"


def test_what_a_run_has_not_stored_is_not_there(
    client: httpx2.Client, lease: dict[str, Any]
) -> None:
    assert problem(get(client, lease, b"never stored"), 404, "not_found")
    assert client.get(f"/v1/runs/{lease['run']}/artifacts/short").status_code == 404


def test_a_file_that_is_gone_or_damaged_is_never_taken_for_the_whole(
    client: httpx2.Client, lease: dict[str, Any], tmp_path: Path
) -> None:
    put(client, lease, LARGE).raise_for_status()
    [file] = files(tmp_path / "artifacts")
    file.chmod(0o600)
    file.write_bytes(LARGE[:-1] + b"?")
    with pytest.raises(httpx2.RemoteProtocolError):
        get(client, lease, LARGE)
    file.unlink()
    gone = get(client, lease, LARGE)

    assert problem(gone, 404, "not_found")
    assert str(tmp_path) not in gone.text  # Where the service keeps files is nothing for clients.


def _head(client: httpx2.Client, lease: dict[str, Any], token: str) -> bytes:
    return (
        f"PUT /v1/leases/{token}/artifacts?run={lease['run']}&name=b.bin HTTP/1.1\r\nhost: x\r\n"
        f"authorization: {client.headers['authorization']}\r\ncontent-length: 1000000\r\n\r\n"
    ).encode()


def _connect(keeping: Served) -> socket.socket:
    at = urlsplit(keeping.url)
    return socket.create_connection((at.hostname, at.port), timeout=20)


def test_without_the_lease_nothing_of_a_file_is_waited_for(
    keeping: Served, client: httpx2.Client, lease: dict[str, Any]
) -> None:
    wrong = "0190b0a0-1111-7222-8333-444455556666"
    with keeping.client("work", queues=["other"]) as foreign:
        for sender, token in ((client, wrong), (foreign, lease["token"])):
            with _connect(keeping) as line:
                line.sendall(_head(sender, lease, token))
                answer = b""
                while b"}" not in answer:
                    answer += line.recv(65_536)
            assert b" 200 " in answer.split(b"\r\n")[0]
            assert b'"lost"' in answer


def test_a_file_that_trickles_is_given_up_however_short_its_pauses(
    keeping: Served, client: httpx2.Client, lease: dict[str, Any]
) -> None:
    began, answers = time.monotonic(), b""
    with _connect(keeping) as line:
        line.sendall(_head(client, lease, lease["token"]))
        line.settimeout(0.05)
        while not answers and time.monotonic() - began < 20:
            with contextlib.suppress(ConnectionError):
                line.sendall(b"x")
            with contextlib.suppress(TimeoutError):
                answers = line.recv(65_536)

    assert b" 408 " in answers.split(b"\r\n")[0]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens are looked at often."""
    monkeypatch.setattr(auth, "BELIEVED_S", 0.3)
    monkeypatch.setattr(auth, "LOOK_S", 0.05)


@pytest.mark.usefixtures("quick")
def test_a_download_ends_with_its_token(
    address: DatabaseAddress, store: Store, lease: dict[str, Any], tmp_path: Path
) -> None:
    content = bytes(24 << 20)  # More than the sockets hold.
    options = ServiceOptions(artifacts=str(tmp_path))
    with serving(address, store, options) as served, served.client() as admin:
        put(admin, lease, content).raise_for_status()
        token_id, secret = make_token(store, "read")
        path = f"/v1/runs/{lease['run']}/artifacts/{hashlib.sha256(content).hexdigest()}"
        with _connect(served) as line:
            line.sendall(
                f"GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\n\r\n".encode()
            )
            received = len(line.recv(1_000))
            store.all(queries.revoke_token(token_id))
            until(lambda: token_digest(secret) not in served.service.keyring._known, 20)
            with contextlib.suppress(ConnectionResetError):
                while part := line.recv(1 << 20):
                    received += len(part)

    assert 0 < received < len(content)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("paused", [False, True], ids=["trickles", "pauses"])
def test_a_file_ends_with_its_token(
    address: DatabaseAddress, store: Store, *, paused: bool
) -> None:
    with serving(address, store, ServiceOptions(body_s=60)) as served:
        token_id, secret = make_token(store, "admin")
        with served.bearer(secret) as client, _connect(served) as line:
            enqueue_one(client)
            lease = claim_one(client)
            line.sendall(_head(client, lease, lease["token"]) + b"x")
            until(lambda: served.service.uploads.used == 1)
            store.all(queries.revoke_token(token_id))
            line.settimeout(20 if paused else 0.05)
            answer, began = b"", time.monotonic()
            while not answer and time.monotonic() - began < 20:
                with contextlib.suppress(TimeoutError):
                    answer = line.recv(65_536)
                if not answer and not paused:
                    line.sendall(b"x")

    assert b" 401 " in answer.split(b"\r\n")[0]


def test_files_of_one_token_leave_room_for_others(
    address: DatabaseAddress, store: Store, tmp_path: Path
) -> None:
    options = ServiceOptions(artifacts=str(tmp_path), uploads=4, body_s=120)
    with serving(address, store, options) as served, served.client() as other:
        enqueue_one(other)
        lease = claim_one(other)
        with contextlib.ExitStack() as lines, served.client("work") as greedy:
            for _ in range(8):
                line = lines.enter_context(_connect(served))
                line.sendall(_head(greedy, lease, lease["token"]) + b"x")
            until(lambda: served.service.uploads.used == 2)

            assert put(other, lease, b"small").json()["verdict"] == "stored"
            until(lambda: served.service.requests.used == 0)
