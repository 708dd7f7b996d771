# SPDX-License-Identifier: MIT
"""The service's answers to requests that are broken, huge, slow or incomplete."""

import contextlib
import gzip
import resource
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2
import pytest

from byrote.service import server
from byrote.service.options import ServiceOptions
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import Store
from tests.service.harness import Served, claim_one, enqueue_one, make_token, problem, serving
from tests.service.processes import processes

JSON = {"content-type": "application/json"}


BROKEN = [
    (b"", 400),
    (b"{", 400),
    (b'{"task":"t"', 400),
    (b'{"task":"t"}x', 400),
    (b"\xff\xfe", 400),
    (b'{"task":"\xff"}', 400),
    (b'{"task":NaN}', 400),
    (b"null", 422),
    (b"3", 422),
    (b'"t"', 422),
    (b"[]", 422),
    (b"{}", 422),
    (b'{"task":3}', 422),
    (b'{"task":""}', 422),
    (b'{"task":"a b"}', 422),
    (b'{"task":"t\\n"}', 422),
    (b'{"task":"t","surprise":1}', 422),
    (b'{"task":"t","version":0}', 422),
    (b'{"task":"t","version":1.0}', 422),
    (b'{"task":"t","args":{}}', 422),
    (b'{"task":"t","kwargs":[]}', 422),
    (b'{"task":"t","args":[1],"payload":1}', 422),
    (b'{"task":"t","args":[1e999]}', 422),
    (b'{"task":"t","args":["\\ud800"]}', 400),
    (b'{"task":"t","kwargs":{"a":1,"a":2}}', 422),
    (b'{"task":"t","run_after":"soon"}', 422),
    (b'{"task":"t","run_after":"2030-01-01T00:00:00"}', 422),
    (b'{"task":"t","run_after":"0001-01-01T00:00:00Z"}', 422),
    (b'{"task":"t","run_after":-1}', 422),
    (b'{"task":"t","timeout":0}', 422),
    (b'{"task":"t","timeout":"1y"}', 422),
    (b'{"task":"t","labels":{"a":"\\u0000"}}', 422),
    (b'{"task":"t","labels":{"a":1}}', 422),
    (b'{"task":"t","traceparent":"\\u00e9"}', 422),
    (b'{"task":"t","retry":{"attempts":0}}', 422),
    (b'{"task":"t","retry":{"delay_first":"x"}}', 422),
    (b'{"task":"t","args":' + b"[" * 600 + b"]" * 600 + b"}", 422),
    (b'{"task":"t","args":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
    (b'{"task":"t","args":[' + b"1" * 5_000 + b"]}", 422),
]


def test_a_broken_run_is_refused_with_a_reason(admin: httpx2.Client) -> None:
    for body, status in BROKEN:
        answer = admin.post("/v1/runs", content=body, headers=JSON)
        told = problem(answer, status, "bad_request" if status == 400 else "invalid")
        assert len(told["detail"]) > 10, body[:80]

    assert admin.get("/v1/runs").json()["runs"] == []


def test_values_that_json_escapes_are_taken(admin: httpx2.Client) -> None:
    run = enqueue_one(admin, payload="\x00 é \U0001f600")
    lease = claim_one(admin)

    assert lease["run"] == run
    assert lease["spec"]["args"] == ["\x00 é \U0001f600"]


def test_nul_in_the_messages_of_a_worker_does_no_harm(admin: httpx2.Client) -> None:
    run = enqueue_one(admin)
    lease = claim_one(admin)
    error = {"type": "A\x00", "message": "b\x00\ud800".encode("utf-8", "replace").decode()}
    said = {"run": run, "token": lease["token"], "error": error, "output": {"stdout": "c\x00"}}
    admin.post("/v1/leases/finish", json=said).raise_for_status()

    assert admin.get(f"/v1/runs/{run}").json()["errors"][0]["type"] == "A\\x00"


def test_an_attempt_ends_in_one_way(admin: httpx2.Client) -> None:
    run = enqueue_one(admin)
    lease = claim_one(admin)
    wrong: list[dict[str, object]] = [
        {},
        {"result": 1, "error": {"type": "A"}},
        {"result": 1, "cancelled": True},
        {"error": {"type": "A"}, "verdict": {"kind": "succeed"}},
        {"result": 1, "verdict": {"kind": "retry"}},
        {"snooze": {"after": "soon"}},
    ]
    for said in wrong:
        body = {"run": run, "token": lease["token"], **said}
        problem(admin.post("/v1/leases/finish", json=body), 422, "invalid")

    assert admin.get(f"/v1/runs/{run}").json()["status"] == "RUNNING"


def test_a_body_that_is_not_json_is_not_taken(admin: httpx2.Client) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    problem(admin.post("/v1/runs", content=b"task=t", headers=form), 415, "not_json")
    packed = {**JSON, "content-encoding": "gzip"}
    body = gzip.compress(b'{"task":"t"}')
    problem(admin.post("/v1/runs", content=body, headers=packed), 415, "not_json")


NONSENSE = [
    "/v1/runs?limit=0", "/v1/runs?limit=201", "/v1/runs?limit=x", "/v1/runs?surprise=1",
    "/v1/runs?status=DONE", "/v1/runs?cursor=x", "/v1/runs?label=x", "/v1/runs?limit=1&limit=2",
    "/v1/runs?queue=%00", "/v1/dead?cursor=eA==", "/v1/dead?cursor=%C3%A9", "/v1/stats?window=1s",
    "/v1/stats?window=x", "/v1/stream?run=x",
]  # fmt: skip


def test_a_parameter_that_makes_no_sense_is_refused(admin: httpx2.Client) -> None:
    for path in NONSENSE:
        problem(admin.get(path), 422, "invalid")


@pytest.fixture
def small(address: DatabaseAddress, store: Store) -> Iterator[Served]:
    """A service with little patience and little room."""
    limits = ServiceOptions(body_max=10_000, payload_max={"*": 1_000}, body_s=0.3, at_once=4)
    with serving(address, store, limits) as running:
        yield running


def test_a_huge_body_is_refused_and_dropped_only_so_far(small: Served) -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while sent < 200_000_000:
            sent += 100_000
            yield b"[" * 100_000

    with small.client() as client:
        problem(client.post("/v1/runs", content=b"[" * 20_000, headers=JSON), 413, "too_large")
        with contextlib.suppress(httpx2.TransportError):
            problem(client.post("/v1/runs", content=endless(), headers=JSON), 413, "too_large")
        assert sent < 200_000_000
        problem(
            client.post("/v1/runs", json={"task": "t", "payload": "x" * 2_000}), 413, "too_large"
        )
        assert client.get("/v1/runs").json()["runs"] == []


def connect(served: Served) -> socket.socket:
    at = urlsplit(served.url)
    return socket.create_connection((at.hostname, at.port), timeout=10)


def head(secret: str, length: int) -> bytes:
    return (
        f"POST /v1/runs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\n"
        f"content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    ).encode()


def test_a_body_that_does_not_arrive_is_not_waited_for(small: Served) -> None:
    _, secret = make_token(small.store)
    with connect(small) as line:
        line.sendall(head(secret, 100) + b'{"task":')
        answer = b"".join(iter(lambda: line.recv(65_536), b""))

    assert b"408" in answer.split(b"\r\n")[0]
    assert b"too_slow" in answer


def test_a_body_that_is_cut_off_leaves_nothing(small: Served) -> None:
    _, secret = make_token(small.store)
    for _ in range(20):
        with connect(small) as line:
            line.sendall(head(secret, 100) + b'{"task":"t"}')
    with small.client() as client:
        assert client.get("/v1/runs").json()["runs"] == []


def test_a_connection_that_sends_nothing_is_closed(
    small: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HEAD_S", 0.2)
    with connect(small) as silent, connect(small) as trickling:
        trickling.sendall(b"GET /livez HT")

        assert silent.recv(100) == b""
        assert trickling.recv(100) == b""


def test_malformed_http_is_answered_and_closed(small: Served) -> None:
    with connect(small) as line:
        line.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
        assert line.recv(100).startswith(b"HTTP/1.1 400")


def test_ten_thousand_idle_connections_block_no_request(url: str, store: Store) -> None:
    _, secret = make_token(store)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    wanted = min(10_000, hard - 500)
    try:
        with processes(url, 1) as [service], contextlib.ExitStack() as lines:
            for _ in range(wanted):
                line = socket.create_connection(("127.0.0.1", service.port), timeout=30)
                lines.enter_context(line)
            bearer = {"authorization": f"Bearer {secret}"}
            with httpx2.Client(base_url=service.url, headers=bearer, timeout=30) as client:
                assert client.get("/v1/whoami").status_code == 200
                assert enqueue_one(client)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_answers_are_packed_for_those_who_ask(admin: httpx2.Client) -> None:
    for _ in range(20):
        enqueue_one(admin)
    packed = admin.get("/v1/runs", headers={"accept-encoding": "gzip"})
    plain = admin.get("/v1/runs", headers={"accept-encoding": "identity"})

    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.json() == plain.json()


def test_a_request_id_is_kept_if_it_is_one(admin: httpx2.Client) -> None:
    kept = admin.get("/v1/whoami", headers={"x-request-id": "abc-1"}).headers["x-request-id"]
    made = admin.get("/v1/whoami", headers={"x-request-id": "a b"}).headers["x-request-id"]

    assert kept == "abc-1"
    assert len(made) == 36


def test_an_unknown_address_and_a_wrong_method_are_problems(admin: httpx2.Client) -> None:
    problem(admin.get("/v1/nothing"), 404, "not_found")
    answer = admin.put("/v1/runs")
    problem(answer, 405, "method_not_allowed")
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}
