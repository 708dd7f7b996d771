# SPDX-License-Identifier: MIT
"""`byrote bench` measures its figures in separate databases, and leaves nothing behind."""

import json
import os
import subprocess
import sys
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.worker.harness import alive

pytestmark = pytest.mark.xdist_group("bench")

RUNS = 300
LIMIT_S = 120


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "byrote.cli.main", "bench", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)


@pytest.fixture(scope="module")
def told(server_url: str) -> dict[str, Any]:
    """One small bench on the suite's server."""
    small = ("--quick", "--only", "one,bulk,drain-async", "--runs", str(RUNS))
    done = bench("--json", "--url", server_url, *small)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def databases(url: str) -> set[str]:
    with psycopg.connect(url, autocommit=True) as connection:
        return {name for (name,) in connection.execute("select datname from pg_database")}


def test_the_document_holds_the_figures_that_were_asked_for(told: dict[str, Any]) -> None:
    assert set(told["figures"]) == {"enqueue_one", "enqueue_bulk", "drain_async"}
    assert all(figure["per_s"] > 0 for figure in told["figures"].values())


def test_a_drain_reports_the_cpu_time_of_a_local_server(told: dict[str, Any]) -> None:
    drain = told["figures"]["drain_async"]
    assert set(drain) == {"per_s", "worker_cpu_us", "postgres_cpu_us"}
    assert drain["postgres_cpu_us"] >= 0


def test_the_document_has_measurements_and_machine(told: dict[str, Any]) -> None:
    assert told["sizes"]["drain"] == RUNS
    assert told["machine"]["cores"] == os.cpu_count()
    assert told["settings"]["server_version"].startswith(told["versions"]["postgresql"])
    assert {"fsync", "synchronous_commit", "shared_buffers"} <= set(told["settings"])


def test_no_scratch_database_is_left(told: dict[str, Any], server_url: str) -> None:
    assert told["figures"]
    # Other tests may have a bench under way on this server; each names its databases by its pid.
    found = [name for name in databases(server_url) if name.startswith("byrote_bench_")]
    assert [name for name in found if not alive(int(name.split("_")[2]))] == []


def test_a_user_who_may_not_create_databases_is_reported_so(server_url: str) -> None:
    role = f"poor_{os.getpid()}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"create role {role} login")  # type: ignore[call-overload]
        try:
            done = bench(
                "--only", "one", "--runs", "1", "--url", make_conninfo(server_url, user=role)
            )
        finally:
            admin.execute(f"drop role {role}")  # type: ignore[call-overload]
    assert done.returncode == 1
    assert "may not create one" in done.stderr


def test_a_server_that_does_not_answer_is_exit_75() -> None:
    done = bench("--only", "one", "--url", "postgresql://127.0.0.1:1/nowhere")
    assert done.returncode == 75
    assert "127.0.0.1:1" in done.stderr


def test_an_unknown_figure_is_refused_by_name() -> None:
    done = bench("--only", "one,speed")
    assert done.returncode == 2
    assert "'speed'" in done.stderr
