# SPDX-License-Identifier: MIT
"""Answers that go out before a request was read can be read, and what is not sound is refused."""

import http.client
import json
import socket
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from byrote.service import server
from byrote.service.http import gate
from byrote.service.server import ServeOptions
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import Store
from tests.service.harness import Served, make_token, serving
from tests.service.http.test_limits import connect, head, status_of
from tests.support import until


@pytest.mark.parametrize("size", [9_000_000, 20_000_000])
def test_a_client_that_sends_everything_first_can_read_why_it_was_refused(
    served: Served, size: int
) -> None:
    _, secret = make_token(served.store)
    at = urlsplit(served.url)
    asked = [
        (secret, "/v1/runs", 413),
        ("byr_none", "/v1/runs", 401),
        (secret, "/v1/nothing", 404),
    ]
    for token, path, status in asked:
        for headers in ({}, {"transfer-encoding": "chunked"}):
            line = http.client.HTTPConnection(at.hostname or "", at.port, timeout=30)
            known = {"authorization": f"Bearer {token}", "content-type": "application/json"}
            body: Any = b"[" * size
            if headers:
                body = iter([b"[" * 1_000_000] * (size // 1_000_000))
            line.request("POST", path, body, known | headers, encode_chunked=bool(headers))
            answer = line.getresponse()
            told = json.loads(answer.read())
            line.close()
            assert (answer.status, told["status"]) == (status, status)
            assert answer.getheader("connection") == "close"


NODE = """
const [url, token, size] = process.argv.slice(2);
for (let turn = 0; turn < 5; turn++) {
  const answer = await fetch(`${url}/v1/runs`, {
    method: "POST", body: "[".repeat(Number(size)),
    headers: {authorization: `Bearer ${token}`, "content-type": "application/json"},
  });
  const told = await answer.json();
  console.log(answer.status, told.code);
}
"""


@pytest.mark.needs("node")
def test_fetch_of_node_can_read_that_a_body_is_too_large(served: Served, tmp_path: Path) -> None:
    script = tmp_path / "send.mjs"
    script.write_text(NODE)
    _, secret = make_token(served.store)
    command = ["node", str(script), served.url, secret, "12000000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert done.stdout.splitlines() == ["413 too_large"] * 5, done.stderr


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /v1/leases HTTP/1.1\r\nhost: x\r\ntransfer-encoding: \r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\nno colon\r\n\r\n",
        b"\x16\x03\x01 not http at all\r\n\r\n",
    ],
    ids=["framing", "header", "noise"],
)
def test_what_is_not_http_is_refused_as_everything_else_is(served: Served, sent: bytes) -> None:
    with connect(served) as line:
        line.sendall(sent)
        answer = http.client.HTTPResponse(line)
        answer.begin()
        body = json.loads(answer.read())

    assert (answer.status, body["code"]) == (400, "bad_request")
    assert answer.headers["content-type"] == "application/problem+json"


MALFORMED = {
    "coding": (b"transfer-encoding: -o\r\n", b"x" * 20_000_000),
    "chunk": (
        b"transfer-encoding: chunked\r\n",
        b"5\r\nhello\r\nnot a size\r\n" + b"x" * 20_000_000,
    ),
}


@pytest.mark.parametrize("framing", MALFORMED)
def test_a_client_that_sends_everything_first_can_read_that_it_is_not_http(
    served: Served, framing: str
) -> None:
    header, body = MALFORMED[framing]
    _, secret = make_token(served.store)
    with connect(served) as line:
        line.sendall(head(secret, 0).replace(b"content-length: 0\r\n", header) + body)
        answer = http.client.HTTPResponse(line)
        answer.begin()
        refusal = json.loads(answer.read())
        end = line.recv(100)

    assert (answer.status, refusal["code"], end) == (400, "bad_request", b"")


@pytest.mark.parametrize(
    ("limit", "value", "part"),
    # A trickle reaches no limit of bytes, and a flood that of bytes long before that of time.
    [("DROPPED_MAX", 1_000_000, b"x" * 100_000), ("DROPPED_S", 0.1, b"x")],
    ids=["flood", "trickle"],
)
@pytest.mark.parametrize("sent", [b"not http\r\n\r\n", head("byr_none", 10**9)], ids=["400", "401"])
def test_a_refused_request_is_not_read_for_ever(
    served: Served,
    monkeypatch: pytest.MonkeyPatch,
    *,
    sent: bytes,
    limit: str,
    value: float,
    part: bytes,
) -> None:
    monkeypatch.setattr(gate, "DROPPED_MAX", 10**9)
    monkeypatch.setattr(gate, "DROPPED_S", 60.0)
    monkeypatch.setattr(gate, limit, value)
    with connect(served) as line:
        line.sendall(sent)
        until(lambda: is_closed(line, part), within=8)


def is_closed(line: socket.socket, data: bytes) -> bool:
    """Whether the service has closed the connection, found by sending some more."""
    try:
        line.sendall(data)
    except ConnectionError:
        return True
    return False


def test_a_body_with_two_lengths_is_refused(served: Served) -> None:
    _, secret = make_token(served.store)
    with connect(served) as line:
        both = head(secret, 5).replace(b"\r\n\r\n", b"\r\ntransfer-encoding: chunked\r\n\r\n")
        line.sendall(both + b'c\r\n{"task":"t"}\r\n0\r\n\r\n')
        assert status_of(line) == 400


def test_a_tls_client_that_sends_nothing_is_closed_soon(
    address: DatabaseAddress, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(server, "HEAD_S", 0.3)
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    files = ["-keyout", str(key), "-out", str(cert)]
    subprocess.run([*make.split(), *files], check=True, capture_output=True)
    listen = ServeOptions(port=0, certificate=cert, key=key, grace_s=5)
    with serving(address, store, listen=listen) as secure, connect(secure) as silent:
        assert silent.recv(100) == b""
