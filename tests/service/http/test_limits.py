# SPDX-License-Identifier: MIT
"""No token, and no client without one, keeps the service from answering others."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import httpx2
import psycopg
import pytest

from byrote.core.text.ids import token_digest
from byrote.service import server
from byrote.service.http import auth
from byrote.service.http.auth import CACHED_MAX, Grant, Keyring
from byrote.service.http.slots import Slots
from byrote.service.options import ServiceOptions
from byrote.service.readiness import Readiness
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.queries.tokens import Token
from byrote.store.runners.sync import Store
from byrote.wire.problems import TooMany, Unauthorized, Unavailable
from tests.service.harness import (
    Served,
    enqueue_one,
    make_token,
    problem,
    serving,
)
from tests.support import Db, count, until

LIMITS = ServiceOptions(
    at_once=8, streams=4, waiting=40, uploads=4, body_s=15, token_s=0.5, ready_s=0.5
)


@pytest.fixture
def tight(address: DatabaseAddress, store: Store) -> Iterator[Served]:
    """A service with little room."""
    with serving(address, store, LIMITS) as running:
        yield running


def connect(served: Served) -> socket.socket:
    at = urlsplit(served.url)
    return socket.create_connection((at.hostname, at.port), timeout=20)


def head(secret: str, length: int, path: str = "/v1/runs", method: str = "POST") -> bytes:
    return (
        f"{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\n"
        f"content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    ).encode()


def status_of(line: socket.socket) -> int:
    answer = line.recv(65_536)
    return int(answer.split(b" ")[1]) if answer else 0


def status_before(line: socket.socket, moment: float) -> int:
    """The status of the answer; TimeoutError if it does not arrive before a moment."""
    line.settimeout(max(moment - time.monotonic(), 0.01))
    return status_of(line)


def answered(served: Served, secret: str) -> None:
    """All is well for others."""
    assert httpx2.get(f"{served.url}/livez").status_code == 200
    with served.bearer(secret) as other:
        other.get("/readyz").raise_for_status()
        enqueue_one(other)


# -- Places ----------------------------------------------------------------------------------------


def test_a_token_takes_no_more_places_than_are_free() -> None:
    slots = Slots(9, "Full")
    held: dict[str, int] = {}
    for token in "abc":
        with contextlib.suppress(Unavailable):
            while True:
                slots.take(token)
                held[token] = held.get(token, 0) + 1

    assert held == {"a": 5, "b": 2, "c": 1}
    assert slots.used < slots.limit


def test_bodies_that_do_not_arrive_keep_out_their_token_only(tight: Served) -> None:
    _, greedy = make_token(tight.store, "enqueue", queues=["q"])
    _, other = make_token(tight.store)
    with contextlib.ExitStack() as lines:
        busy = [lines.enter_context(connect(tight)) for _ in range(20)]
        for line in busy:
            line.sendall(head(greedy, 100) + b"{")
        until(lambda: tight.service.requests.used == 4)
        with tight.bearer(greedy) as client:
            answer = client.get("/v1/whoami")
            # Its probes have places of their own.
            assert client.get("/readyz").status_code == 200
        answered(tight, other)

    problem(answer, 503, "unavailable")
    assert answer.headers["retry-after"] == "1"


def test_streams_of_one_token_leave_room_for_others(tight: Served) -> None:
    _, greedy = make_token(tight.store, "read")
    _, other = make_token(tight.store)
    with contextlib.ExitStack() as lines:
        opened = [lines.enter_context(connect(tight)) for _ in range(20)]
        for line in opened:
            line.sendall(head(greedy, 0, "/v1/stream", "GET"))
        statuses = [status_of(line) for line in opened]

        assert statuses.count(200) == 2
        assert statuses.count(503) == 18
        until(lambda: tight.service.requests.used == 0)
        answered(tight, other)
        with tight.bearer(other) as client, client.stream("GET", "/v1/stream") as stream:
            assert stream.status_code == 200
        with tight.bearer(greedy) as client:
            client.get("/v1/whoami").raise_for_status()
    until(lambda: tight.service.streams.used == 0)


def test_claims_of_one_token_that_wait_leave_room_for_others(tight: Served) -> None:
    _, greedy = make_token(tight.store, "work")
    _, other = make_token(tight.store)
    body = json.dumps({"worker": "w", "tasks": ["none@1"], "wait_s": 30}).encode()
    with contextlib.ExitStack() as lines:
        waiting = [lines.enter_context(connect(tight)) for _ in range(20)]
        for number, line in enumerate(waiting, 1):
            line.sendall(head(greedy, len(body), "/v1/leases") + body)
            until(lambda number=number: tight.service.waits.used == number)
        late = lines.enter_context(connect(tight))
        late.sendall(head(greedy, len(body), "/v1/leases") + body)

        assert status_of(late) == 503
        answered(tight, other)
    until(lambda: tight.service.waits.used == 0)


def test_made_up_tokens_do_not_keep_anyone_out_while_the_database_hangs(
    tight: Served, url: str
) -> None:
    _, secret = make_token(tight.store)
    answered(tight, secret)
    with contextlib.ExitStack() as held:
        hanging = held.enter_context(psycopg.connect(url))
        hanging.execute("lock table byrote_tokens in access exclusive mode")
        lines = [held.enter_context(connect(tight)) for _ in range(300)]
        for number, line in enumerate(lines):
            line.sendall(head(f"byr_{number:043}", 0, "/v1/whoami", "GET"))
        began = time.monotonic()
        assert httpx2.get(f"{tight.url}/livez", timeout=5).status_code == 200
        assert {status_before(line, began + 15) for line in lines} == {503}
        with tight.bearer(secret) as client:
            until(lambda: client.get("/readyz").status_code == 503, within=15)
        assert time.monotonic() - began < 15
        hanging.rollback()
    with tight.bearer(secret) as client:
        until(lambda: client.get("/readyz").status_code == 200)
    answered(tight, secret)


def test_a_client_that_does_not_read_is_not_waited_for(
    tight: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "UNREAD_S", 0.2)
    _, secret = make_token(tight.store)
    with tight.bearer(secret) as client:
        run = enqueue_one(client, payload="x" * 4_000_000)
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        at = urlsplit(tight.url)
        line.connect((at.hostname, at.port))
        line.sendall(head(secret, 0, f"/v1/runs/{run}", "GET"))
        line.settimeout(20)
        threading.Event().wait(1.5)  # Not a fact to wait for: this is the client's silence.
        received = 0
        with contextlib.suppress(ConnectionResetError):
            while part := line.recv(65_536):
                received += len(part)

    assert received < 4_000_000


# -- Tokens that end -------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens are looked at often."""
    monkeypatch.setattr(auth, "BELIEVED_S", 0.3)
    monkeypatch.setattr(auth, "LOOK_S", 0.05)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_a_token_that_ends_ends_what_waits_with_it(
    served: Served, admin: httpx2.Client, db: Db, how: str
) -> None:
    run = enqueue_one(admin, "never", queue="aside")  # A ready run would make the claim look.
    token_id, secret = make_token(served.store)
    claim = {"worker": "w", "tasks": ["hello@1"], "wait_s": 40}

    def follow(client: httpx2.Client) -> int:
        with client.stream("GET", "/v1/stream") as stream:
            for _ in stream.iter_lines():
                pass
        return client.get("/v1/whoami").status_code

    with served.bearer(secret) as client, ThreadPoolExecutor(4) as pool:
        began = time.monotonic()
        asked = [
            pool.submit(follow, client),
            pool.submit(lambda: client.post("/v1/leases", json=claim).status_code),
            pool.submit(lambda: client.get(f"/v1/runs/{run}?wait=40s").status_code),
            pool.submit(lambda: client.get("/v1/workers/w/cancellations?wait=40s").status_code),
        ]
        until(lambda: served.service.waits.used == 3 and served.service.streams.used == 1)
        if how == "revoked":
            served.store.all(queries.revoke_token(token_id))
        else:
            sql = "update byrote_tokens set expires_at = byrote_now() where token_id = %s"
            db.execute(sql, (token_id,))
        assert [answer.result(20) for answer in asked] == [401, 401, 401, 401]
        assert time.monotonic() - began < 20

    assert auth.BELIEVED_S + auth.LOOK_S < 5


@pytest.mark.usefixtures("quick")
def test_a_claim_that_waits_gets_no_lease_from_a_revoked_token(
    served: Served, admin: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the service has not noticed yet that the token has ended."""
    monkeypatch.setattr(auth, "LOOK_S", 60)
    token_id, secret = make_token(served.store)
    claim = {"worker": "w", "tasks": ["hello@1"], "wait_s": 20}
    with served.bearer(secret) as client, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.post, "/v1/leases", json=claim)
        until(lambda: served.service.claim_waiters.waiting == 1)
        served.store.all(queries.revoke_token(token_id))
        threading.Event().wait(0.5)  # Longer than a token is believed.
        run = enqueue_one(admin)
        problem(waiting.result(20), 401, "unauthorized")

    assert admin.get(f"/v1/runs/{run}").json()["status"] == "READY"


@pytest.mark.usefixtures("quick")
def test_a_body_that_arrives_after_its_token_was_revoked_does_nothing(
    tight: Served, db: Db
) -> None:
    token_id, secret = make_token(tight.store, "enqueue")
    body = b'{"task":"hello"}'
    with connect(tight) as line:
        line.sendall(head(secret, len(body)) + body[:5])
        until(lambda: tight.service.requests.used == 1)
        tight.store.all(queries.revoke_token(token_id))
        threading.Event().wait(0.5)  # Longer than a token is believed.
        line.sendall(body[5:])

        assert status_of(line) == 401
    assert count(db, "byrote_runs") == 0


# -- Rates -----------------------------------------------------------------------------------------


class SlowStore:
    """Tokens that take a while to be found; counts how often they are looked up."""

    def __init__(self, known: dict[bytes, Token]) -> None:
        self.known = known
        self.looked = 0
        self.unknown_tokens = 0
        """Unknown tokens that are being looked up."""
        self.strangers_most = 0

    async def first(self, query: Any) -> Token | None:
        self.looked += 1
        token = self.known.get(query.args["hash"])
        self.unknown_tokens += token is None
        self.strangers_most = max(self.strangers_most, self.unknown_tokens)
        await asyncio.sleep(0.01)
        self.unknown_tokens -= token is None
        return token


def _token(secret: str, **more: Any) -> Token:
    rights = {"role": "read", "queues": ["*"], "tasks": ["*"], "rate": 2, "expires_at": None}
    fields = {"id": "i", "holder": "h", "name": "n", "good": True, **rights, **more}
    return Token(hash=token_digest(secret), **fields)


def test_a_token_is_looked_up_once_for_all_who_wait_and_strangers_do_not_drive_it_out() -> None:
    async def all_of_it() -> None:
        now = 0.0
        store: Any = SlowStore({token_digest("byr_a"): _token("byr_a")})
        keyring = Keyring(store, lambda: now, rate=100, token_s=5)
        found = await asyncio.gather(*[keyring.grant("Bearer byr_a") for _ in range(50)])
        assert store.looked == 1
        assert len(set(map(id, found))) == 1
        grant: Grant = found[0]
        await keyring.spend(grant)
        await keyring.spend(grant)
        now = 3.5  # The token is to be looked up again, and refused for its rate all the same.
        grant.bucket._at = now
        store.first = lambda _query: asyncio.sleep(0, None)
        for number in range(CACHED_MAX + 10):
            keyring._forget(b"%32d" % number)
        del store.first
        assert await keyring.grant("Bearer byr_a") is grant
        with pytest.raises(TooMany):
            await keyring.spend(grant)
        assert store.looked == 2
        with pytest.raises(TooMany):  # What was found anew has no more left.
            await keyring.spend(await keyring.grant("Bearer byr_a"))

    asyncio.run(all_of_it())


def test_few_unknown_tokens_are_looked_up_at_once_and_more_than_a_limit_do_not_wait() -> None:
    async def all_of_it() -> tuple[SlowStore, list[object]]:
        store: Any = SlowStore({})
        keyring = Keyring(store, lambda: 0.0, rate=100, token_s=5)
        asked = [keyring.grant(f"Bearer byr_{number}") for number in range(300)]
        return store, list(await asyncio.gather(*asked, return_exceptions=True))

    store, answers = asyncio.run(all_of_it())
    kinds = Counter(type(answer) for answer in answers)

    assert store.strangers_most == auth.UNKNOWN_TOKENS_AT_ONCE
    assert kinds == {
        Unauthorized: auth.UNKNOWN_TOKENS_MAX,
        Unavailable: 300 - auth.UNKNOWN_TOKENS_MAX,
    }


def test_a_database_that_hangs_is_asked_once_by_all_probes_and_not_waited_for() -> None:
    class HangingStore:
        asked = 0

        async def all(self, _query: object) -> list[object]:
            self.asked += 1
            await asyncio.Event().wait()
            return []

    async def all_of_it() -> None:
        store: Any = HangingStore()
        readiness = Readiness(store, time.monotonic, 0.05)
        async with asyncio.timeout(20):
            probes = [readiness.check() for _ in range(5)]
            answers = await asyncio.gather(*probes, return_exceptions=True)
        assert [type(answer) for answer in answers] == [Unavailable] * 5
        assert store.asked == 1

    asyncio.run(all_of_it())


def test_requests_that_waited_for_the_database_are_not_refused_for_their_rate(
    served: Served, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a token may ask grows while its requests wait: the moment of their arrival is past."""
    now = [time.monotonic()]
    keyring = served.service.keyring
    monkeypatch.setattr(auth, "BELIEVED_S", 0.0)
    monkeypatch.setattr(keyring, "_clock", lambda: now[0])
    _, secret = make_token(served.store, rate=2)
    with served.bearer(secret) as client, ThreadPoolExecutor(2) as pool:
        client.get("/v1/whoami").raise_for_status()
        with psycopg.connect(url) as hanging:
            hanging.execute("lock table byrote_tokens in access exclusive mode")
            asked = [pool.submit(client.get, "/v1/whoami") for _ in range(2)]
            until(lambda: served.service.requests.used == 2 and bool(keyring._looking))
            now[0] += 10

        assert [answer.result(20).status_code for answer in asked] == [200, 200]
