# SPDX-License-Identifier: MIT
"""A database that accepts everything and answers nothing: every request ends in bounded time."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import pytest

from byrote.service.http import auth
from byrote.service.http.slots import Slots
from byrote.service.options import ServiceOptions
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import Store
from tests.faults.proxy import Proxy, proxied
from tests.service.harness import Served, claim_one, enqueue_one, make_token, problem, serving
from tests.service.http.test_limits import connect, head, status_before
from tests.support import until

LIMITS = ServiceOptions(token_s=0.5, ready_s=0.5, request_s=1, wait_max_s=1, body_s=1)
WITHIN_S = 15.0
"""Far more than the limits above, on a busy machine; far less than for ever."""


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with proxied(url) as proxy:
        yield proxy


@pytest.fixture
def behind(proxy: Proxy, store: Store) -> Iterator[Served]:
    """A service whose database can stop answering."""
    with serving(DatabaseAddress(proxy.url), store, LIMITS) as running:
        try:
            yield running
        finally:
            proxy.black_hole = False
            proxy.cut()


LATE: dict[str, tuple[str, str, dict[str, Any]]] = {
    "probe": ("GET", "/readyz", {}),
    "enqueue": ("POST", "/v1/runs", {"json": {"task": "t"}}),
    "enqueue once": (
        "POST", "/v1/runs", {"json": {"task": "t"}, "headers": {"idempotency-key": "k"}},
    ),
    "unique": ("POST", "/v1/runs", {"json": {"task": "t", "unique_key": "k"}}),
    "claim": ("POST", "/v1/leases", {"json": {"worker": "w", "tasks": ["t@1"], "wait_s": 1}}),
    "list": ("GET", "/v1/runs", {}),
    "show": ("GET", "/v1/runs/{run}", {"params": {"wait": "1s"}}),
    "cancel": ("POST", "/v1/runs/{run}/cancel", {}),
    "finish": ("POST", "/v1/leases/finish", {"json": {"run": "{run}", "token": "{token}",
                                                      "result": 1}}),
    "stream": ("GET", "/v1/stream", {}),
    "upload": ("PUT", "/v1/leases/{token}/artifacts?run={run}&name=a", {"content": b"x"}),
    "download": ("GET", "/v1/runs/{run}/artifacts/" + 64 * "0", {}),
}  # fmt: skip


def filled(value: Any, **words: str) -> Any:
    """The same with its places filled in."""
    match value:
        case str():
            return value.format(**words)
        case dict():
            return {key: filled(each, **words) for key, each in value.items()}
        case _:
            return value


@pytest.mark.parametrize("what", LATE)
def test_a_request_is_answered_while_the_database_hangs(
    behind: Served, proxy: Proxy, what: str
) -> None:
    method, path, more = LATE[what]
    with behind.client() as client:
        held = {"run": enqueue_one(client), "token": claim_one(client)["token"]}
        proxy.black_hole = True
        path, more = filled(path, **held), filled(more, **held)
        answer = client.request(method, path, timeout=WITHIN_S, **more)

    problem(answer, 503, "unavailable")
    until(lambda: behind.service.requests.used == 0)
    assert int(answer.headers["retry-after"]) >= 1


def test_a_token_is_not_looked_up_for_ever(
    behind: Served, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither one that is not known nor one that was believed for long enough."""
    monkeypatch.setattr(auth, "BELIEVED_S", 0.0)
    _, secret = make_token(behind.store)
    with behind.bearer(secret) as known, behind.bearer("byr_" + 43 * "x") as unknown:
        known.get("/v1/whoami").raise_for_status()
        proxy.black_hole = True
        answers = [client.get("/v1/whoami", timeout=WITHIN_S) for client in (known, unknown)]

    for answer in answers:
        assert "database does not answer" in problem(answer, 503, "unavailable")["detail"]


def test_many_unknown_tokens_are_answered_together(behind: Served, proxy: Proxy) -> None:
    with contextlib.ExitStack() as held:
        proxy.black_hole = True
        lines = [held.enter_context(connect(behind)) for _ in range(300)]
        for number, line in enumerate(lines):
            line.sendall(head(f"byr_{number:043}", 0, "/v1/whoami", "GET"))
        latest = time.monotonic() + WITHIN_S

        assert {status_before(line, latest) for line in lines} == {503}


def test_a_handler_that_was_abandoned_takes_no_place_when_it_comes_back() -> None:
    slots, waiting = Slots(2, "Full"), contextlib.ExitStack()
    with slots.take("a") as slot:
        waiting.enter_context(slot.left())
    waiting.close()

    assert slots.used == 0
