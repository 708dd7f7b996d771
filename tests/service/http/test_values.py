# SPDX-License-Identifier: MIT
"""Bodies with very many values are worked on beside the event loop, up to a limit."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx2
import pytest

from byrote.service import verdicts
from byrote.service.http import endpoint
from byrote.service.http.offload import Offload, check_values, is_heavy
from byrote.service.options import ServiceOptions
from byrote.service.routes import leases, progress, runs, steps
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import Store
from tests.service.harness import Served, claim_one, enqueue_one, problem, serving

JSON = {"content-type": "application/json"}
MOST = ServiceOptions().values_max

BODIES: Mapping[str, Callable[[dict[str, str]], str]] = {
    "/v1/runs": lambda _held: '{"task":"t","payload":VALUE}',
    "/v1/runs/{run}/signal": lambda _held: '{"event":"go","payload":VALUE}',
    "/v1/leases/finish": lambda held: (
        f'[{{"run":"{held["run"]}","token":"{held["token"]}","result":VALUE}}]'
    ),
    "/v1/leases/steps": lambda held: (
        f'{{"steps":[{{"run":"{held["run"]}","token":"{held["token"]}","sequence":0,'
        '"kind":"step","name":"s","result":VALUE}]}'
    ),
    "/v1/provenance": lambda _held: '{"digest":"' + "0" * 64 + '","doc":{"a":VALUE}}',
    "/v1/leases/progress": lambda held: (
        f'{{"reports":[{{"run":"{held["run"]}","token":"{held["token"]}","done":1,'
        '"data":{"a":VALUE}}]}'
    ),
}


def test_more_values_than_the_limit_are_refused_on_every_route(
    address: DatabaseAddress, store: Store
) -> None:
    with (
        serving(address, store, ServiceOptions(values_max=5_000)) as served,
        served.client() as admin,
    ):
        enqueue_one(admin)
        lease = claim_one(admin)
        for path, body in BODIES.items():
            for value in ("[" + "1.5," * 5_000 + "1]", "[" + "[]," * 5_000 + "{}]"):
                sent = body(lease).replace("VALUE", value)
                answer = admin.post(path.format_map(lease), content=sent, headers=JSON)
                told = problem(answer, 413, "too_large")
                assert "5,000 JSON values" in told["detail"], path


def test_a_text_may_have_any_number_of_commas(admin: httpx2.Client) -> None:
    run = enqueue_one(admin, payload='[{,"\\' * 500_000)

    assert admin.get(f"/v1/runs/{run}").json()["spec"]["args"][0].startswith("[{,")
    check_values(b'{"a": "' + b'\\",[{' * 100 + b'", "b": 1}', 10)
    assert not is_heavy(b"[1,2,3]")


WHERE = {
    "/v1/runs": (runs, "digest_of"),
    "/v1/runs/{run}/signal": (runs, "check_text"),
    "/v1/leases/finish": (verdicts, "digest_of"),
    "/v1/leases/steps": (steps, "digest_of"),
    "/v1/provenance": (leases, "digest_of"),
    "/v1/leases/progress": (progress, "report_of"),
}
"""Where each route makes the canonical form of what it is sent."""
REFUSED = {"/v1/provenance", "/v1/leases/progress"}
"""The digest of the description is wrong, and the data of a report is too large."""


@pytest.mark.parametrize("path", BODIES)
def test_leases_are_renewed_while_a_large_body_is_worked_on(
    served: Served, admin: httpx2.Client, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    enqueue_one(admin)
    lease = claim_one(admin)
    enqueue_one(admin)
    other = claim_one(admin)
    home, name = WHERE[path]
    real, begun, renewed = getattr(home, name), threading.Event(), threading.Event()

    def slow(*values: Any) -> Any:
        begun.set()
        assert renewed.wait(20), "no lease was renewed meanwhile"
        return real(*values)

    monkeypatch.setattr(home, name, slow)
    large = BODIES[path](lease).replace("VALUE", "[" + "1.5," * 20_000 + "1]")
    renewal = {"leases": [{"run": other["run"], "token": other["token"]}]}
    with served.client() as greedy, ThreadPoolExecutor(1) as pool:
        sent = pool.submit(greedy.post, path.format_map(lease), content=large, headers=JSON)
        assert begun.wait(20)
        admin.post("/v1/leases/renew", json=renewal, timeout=15).raise_for_status()
        renewed.set()

        assert sent.result(30).status_code in ({422} if path in REFUSED else {200, 201})


def test_leases_are_renewed_while_a_large_body_is_parsed(
    served: Served, admin: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue_one(admin)
    lease = claim_one(admin)
    real, begun, renewed = endpoint._decoded, threading.Event(), threading.Event()

    def slow(decode: Any, raw: bytes, values_max: int) -> Any:
        if is_heavy(raw):
            begun.set()
            assert renewed.wait(20), "no lease was renewed meanwhile"
        return real(decode, raw, values_max)

    monkeypatch.setattr(endpoint, "_decoded", slow)
    large = '{"task":"t","payload":[' + "1.5," * 20_000 + "1]}"
    renewal = {"leases": [{"run": lease["run"], "token": lease["token"]}]}
    with served.client() as greedy, ThreadPoolExecutor(1) as pool:
        sent = pool.submit(greedy.post, "/v1/runs", content=large, headers=JSON)
        assert begun.wait(20)
        admin.post("/v1/leases/renew", json=renewal, timeout=15).raise_for_status()
        renewed.set()

        assert sent.result(30).status_code == 201


def test_tokens_take_turns_with_their_large_bodies() -> None:
    order: list[str] = []
    go = threading.Event()

    def work(name: str) -> None:
        assert go.wait(20)
        order.append(name)

    async def all_of_it() -> None:
        offload = Offload()
        tokens = ("greedy", "greedy", "greedy", "other")
        jobs = [asyncio.ensure_future(offload.run(t, partial(work, t))) for t in tokens]
        await asyncio.sleep(0)  # All of them are in line.
        go.set()
        await asyncio.gather(*jobs)
        offload.close()

    asyncio.run(all_of_it())
    assert order == ["greedy", "other", "greedy", "greedy"]


def test_few_bytes_with_many_values_are_heavy() -> None:
    assert is_heavy(b"[" + b"1," * 3_000 + b"1]")
    assert is_heavy(b'"' + b"x" * 70_000 + b'"')
    assert not is_heavy(b'"' + b"x" * 10_000 + b'"')


def test_a_value_of_the_largest_size_is_taken(admin: httpx2.Client) -> None:
    large = '{"task":"t","payload":[' + "1.5," * (MOST - 100) + "1]}"

    assert admin.post("/v1/runs", content=large, headers=JSON, timeout=120).status_code == 201
