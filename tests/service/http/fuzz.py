# SPDX-License-Identifier: MIT
"""Throws at the service whatever its description allows and forbids: Schemathesis, over HTTP.

`python -m tests.service.http.fuzz --examples 5000` is the long form; the suite runs a short one.
No answer may be a server error, and each must match the description.

A request that was made up holds no lease and would never get beyond that. So every second one is
sent with runs and tokens of leases that are held, and with some of its parts repeated.
"""

import argparse
import contextlib
import os
import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from byrote.assembly.identity import jitter
from byrote.embedded.server import open_server
from byrote.service.options import ServiceOptions
from byrote.store.connect import DatabaseAddress
from byrote.store.migrate import migrate
from byrote.store.runners.sync import Store
from tests.service.harness import Served, claim_one, enqueue_one, make_token, serving

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
ENDLESS = frozenset({"/v1/stream"})
LIMITS = ServiceOptions(wait_max_s=0.01, rate=100_000)


HELD = 4
"""Leases that are held at a time."""


class Leases:
    """Runs under way, with steps, artifacts and progress; others are made when they have ended."""

    def __init__(self, served: Served) -> None:
        self._client = served.client()
        self._held: list[dict[str, Any]] = []

    def some(self) -> list[dict[str, str]]:
        """Leases that hold."""
        if self._held:
            pairs = [{"run": lease["run"], "token": lease["token"]} for lease in self._held]
            said = self._client.post("/v1/leases/renew", json={"leases": pairs}).json()
            lost = {*said["lost"], *said.get("locked", ())}
            self._held = [lease for lease in self._held if lease["run"] not in lost]
        while len(self._held) < HELD:
            self._held.append(self._leased())
        return [{"run": lease["run"], "token": lease["token"]} for lease in self._held]

    def _leased(self) -> dict[str, Any]:
        enqueue_one(self._client, "held", queue="fuzz.held", retry={"attempts": 1000})
        # Some request may have paused the queue, or have claimed the run.
        self._client.post("/v1/queues/fuzz.held/resume")
        lease = claim_one(self._client, "held", queues=["fuzz.held"], lease_for_s=600)
        held = {"run": lease["run"], "token": lease["token"]}
        step = {**held, "sequence": 0, "kind": "step", "name": "first", "result": 1}
        self._client.post("/v1/leases/steps", json={"steps": [step]})
        self._client.post("/v1/leases/artifacts", json={**held, "name": "a.txt", "data": "aGk="})
        self._client.post("/v1/leases/progress", json={"reports": [{**held, "done": 1}]})
        return lease

    def close(self) -> None:
        """Hold nothing more."""
        self._client.close()


def with_leases(value: Any, held: list[dict[str, str]], pick: Any) -> Any:
    """The same value with leases that hold, where it names any, and lists that repeat a part."""
    match value:
        case dict():
            lease = pick(held)
            known = {"run": lease["run"], "id": lease["run"], "token": lease["token"]}
            return {
                name: known[name]
                if name in known and isinstance(part, str)
                else [known["run"]] * len(part)
                if name == "runs" and isinstance(part, list)
                else with_leases(part, held, pick)
                for name, part in value.items()
            }
        case list():
            parts = [with_leases(part, held, pick) for part in value]
            return [*parts, parts[0]] if parts and pick([True, False]) else parts
        case _:
            return value


def fuzz(served: Served, *, examples: int, seeded: int = 0) -> Counter[int]:
    """How often each status was answered; raises at the first answer that may not be."""
    _, secret = make_token(served.store)
    headers = {"authorization": f"Bearer {secret}"}
    schema = schemathesis.openapi.from_url(f"{served.url}/openapi.json", headers=headers)
    seen: Counter[int] = Counter()
    leases = Leases(served)
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path not in ENDLESS:
            for mode in GenerationMode:
                one = _checked(operation, mode, headers, seen, leases=leases)
                _run(one, examples=examples, seeded=seeded)
    leases.close()
    return seen


def _checked(
    operation: Any,
    mode: GenerationMode,
    headers: dict[str, str],
    seen: Counter[int],
    *,
    leases: Leases,
) -> Any:
    @given(case=operation.as_strategy(generation_mode=mode), data=st.data())
    def one(case: Any, data: Any) -> None:
        if data.draw(st.booleans()):
            held = leases.some()
            pick = partial(_pick, data)
            case.body = with_leases(case.body, held, pick)
            case.path_parameters = with_leases(case.path_parameters, held, pick)
            case.query = with_leases(case.query, held, pick)
        answer = case.call(headers=headers)
        case.validate_response(answer, checks=CHECKS)
        seen[answer.status_code] += 1

    return one


def _pick(data: Any, choices: list[Any]) -> Any:
    return data.draw(st.sampled_from(choices))


def _run(one: Any, *, examples: int, seeded: int) -> None:
    bounded = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    # Nothing can be wrong with a request that has neither parameters nor a body.
    with contextlib.suppress(Unsatisfiable):
        seed(seeded)(bounded(one))()


def main() -> int:
    """The long form, on a separate PostgreSQL."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=1_000, help="for each route and mode")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        home = Path(folder) / "pg"
        with open_server(home, environ=os.environ, durable=False) as server:
            address = DatabaseAddress(server.url)
            migrate(address, jitter=jitter)
            store = Store(address, jitter=jitter)
            with serving(address, store, LIMITS) as served:
                seen = fuzz(served, examples=asked.examples, seeded=asked.seed)
            store.close()
    print(f"{seen.total():,} requests: {dict(sorted(seen.items()))}")  # noqa: T201 -- its answer.
    return 0


if __name__ == "__main__":
    sys.exit(main())
