# SPDX-License-Identifier: MIT
"""Throws at the service whatever its description allows and forbids: Schemathesis, over HTTP.

`python -m tests.service.fuzz --examples 5000` is the long form; the suite runs a short one.
No answer may be a server error, and none may be other than the description says.
"""

import argparse
import contextlib
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from byrote.assembly.identity import chance
from byrote.embedded.server import open_server
from byrote.service.options import ServiceOptions
from byrote.store.connect import Door
from byrote.store.migrate import migrate
from byrote.store.sync import Store
from tests.service.harness import Served, make_token, serving

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
ENDLESS = frozenset({"/v1/stream"})
LIMITS = ServiceOptions(wait_max_s=0.01, rate=100_000)


def fuzz(served: Served, *, examples: int, seeded: int = 0) -> Counter[int]:
    """How often each status was answered; raises at the first answer that may not be."""
    _, secret = make_token(served.store)
    headers = {"authorization": f"Bearer {secret}"}
    schema = schemathesis.openapi.from_url(f"{served.url}/openapi.json", headers=headers)
    seen: Counter[int] = Counter()
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path not in ENDLESS:
            for mode in GenerationMode:
                _fuzz_one(operation, mode, headers, seen, examples=examples, seeded=seeded)
    return seen


def _fuzz_one(
    operation: Any,
    mode: GenerationMode,
    headers: dict[str, str],
    seen: Counter[int],
    *,
    examples: int,
    seeded: int,
) -> None:
    @seed(seeded)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def one(case: Any) -> None:
        answer = case.call(headers=headers)
        case.validate_response(answer, checks=CHECKS)
        seen[answer.status_code] += 1

    # Nothing can be wrong with a request that has neither parameters nor a body.
    with contextlib.suppress(Unsatisfiable):
        one()


def main() -> int:
    """The long form, on a PostgreSQL of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=1_000, help="for each route and mode")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        home = Path(folder) / "pg"
        with open_server(home, environ=os.environ, durable=False) as server:
            door = Door(server.url)
            migrate(door, chance=chance)
            store = Store(door, chance=chance)
            with serving(door, store, LIMITS) as served:
                seen = fuzz(served, examples=asked.examples, seeded=asked.seed)
            store.close()
    print(f"{seen.total():,} requests: {dict(sorted(seen.items()))}")  # noqa: T201 -- its answer.
    return 0


if __name__ == "__main__":
    sys.exit(main())
