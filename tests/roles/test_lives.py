# SPDX-License-Identifier: MIT
"""Workers, services, gates and the command line do all their work with the role made for them."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from byrote import App, Context
from byrote.assembly.identity import jitter
from byrote.sdk import Client, Handlers, Worker
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import Store
from tests.cli.console import Process, Said, byrote
from tests.roles.conftest import Logins
from tests.service.harness import make_token, serving
from tests.support import Db, claim, count, finish, until, verdict
from tests.tasks import lives

HERE = Path(__file__).parents[2]
APP = "tests.tasks.lives:app"


def done(url: str, *words: str) -> Said:
    """Run a command that has to succeed."""
    said = byrote(*words, url=url)
    assert said.code == 0, (words, said.out, said.err)
    return said


def status_of(url: str, run_id: str) -> str:
    return str(done(url, "runs", "show", run_id, "--json").object["status"])


@pytest.fixture
def enqueuer(logins: Logins) -> Iterator[App]:
    app = App(logins("enqueue"))
    yield app
    app.close()


@pytest.fixture
def worker(logins: Logins) -> Iterator[Process]:
    """A worker that logs in with its role."""
    words = ("worker", APP, "--hands", "2", "--log-format", "json", "--worker-id", "w")
    with Process(*words, url=logins("worker"), folder=HERE) as process:
        process.wrote("WorkerStarted")
        yield process
        assert "permission denied" not in "".join([*process.out, *process.err])


def test_a_worker_lives_a_whole_life_with_its_role(
    worker: Process, logins: Logins, enqueuer: App, owner: Db
) -> None:
    service, reader = logins("service"), logins("read")
    [run] = [enqueuer.enqueue(lives.everything.spec(1)).id]
    many = [handle.id for handle in enqueuer.enqueue_many([lives.small.spec(n) for n in range(20)])]
    until(lambda: status_of(service, run) == "WAITING")
    done(service, "runs", "signal", run, "go", '{"sure": true}')
    until(lambda: status_of(service, run) == "SUCCESSFUL")
    until(lambda: {status_of(service, one) for one in many} == {"SUCCESSFUL"})
    whole = done(service, "runs", "show", run, "--json").object
    ticks = until(lambda: done(reader, "schedules", "list", "--json").object["runs"])

    assert [step["name"] for step in whole["steps"]][:1] == ["first"]
    assert whole["provenance"]
    assert whole["result"]["told"] == {"sure": True}
    assert status_of(service, whole["result"]["child"])
    assert "note.txt" in done(service, "runs", "artifacts", run).out
    assert "begun 1" in done(service, "runs", "logs", run).out
    assert ticks
    assert count(owner, "byrote_once") == 1
    assert done(service, "verify", "--json").object["sound"]


def test_what_a_worker_knows_already_answers_a_run_with_a_memo(
    worker: Process, logins: Logins
) -> None:
    first, again = (enqueue_kept(logins("worker")).stdout.split() for _ in range(2))
    shown = done(logins("worker"), "runs", "show", again[0], "--json").object

    assert (first[1], again[1]) == ("42", "42")
    assert shown["memo_of"] == first[0]


def enqueue_kept(url: str) -> subprocess.CompletedProcess[str]:
    """Enqueue a task with a memo from a process that logs in like this, and wait for it."""
    text = (
        "from tests.tasks.lives import kept\n"
        "run = kept.enqueue(21)\n"
        "print(run.id, run.result(timeout='60s'))"
    )
    environ = {**os.environ, "BYROTE_DATABASE_URL": url}
    command = [sys.executable, "-c", text]
    return subprocess.run(
        command, cwd=HERE, env=environ, capture_output=True, text=True, check=False
    )


def test_the_command_line_steers_runs_with_the_role_of_the_service(
    worker: Process, logins: Logins
) -> None:
    url = logins("service")
    slow = done(url, "enqueue", "slow").out.strip()
    until(lambda: status_of(url, slow) == "RUNNING")
    with Process("runs", "logs", slow, "--follow", url=url, folder=HERE) as logs:
        logs.wrote("still here", 3)
        done(url, "runs", "cancel", slow)
        assert logs.ended().code == 0
    assert status_of(url, slow) == "CANCELLED"

    dead = [done(url, "enqueue", "hopeless").out.strip() for _ in range(2)]
    until(lambda: {status_of(url, one) for one in dead} == {"FAILED"})
    done(url, "queues", "pause", "default")
    done(url, "runs", "retry", dead[0])
    assert status_of(url, dead[0]) == "READY"
    done(url, "queues", "resume", "default")
    until(lambda: status_of(url, dead[0]) == "FAILED")
    done(url, "dead", "requeue", dead[1])
    until(lambda: status_of(url, dead[1]) == "FAILED")
    done(url, "dead", "delete", dead[1])
    for words in (("schedules", "pause", "pulse"), ("schedules", "resume", "pulse")):
        done(url, *words)
    done(url, "prune")
    done(url, "prune", "--dry-run")


def test_a_gate_replays_with_the_role_of_a_worker(
    worker: Process, logins: Logins, enqueuer: App
) -> None:
    url = logins("worker")
    runs = enqueuer.enqueue_many([lives.small.spec(n) for n in range(3)])
    until(lambda: {status_of(url, run.id) for run in runs} == {"SUCCESSFUL"})
    chosen = ("--task", lives.small.name, "--last", "3")
    verdicts = done(url, "replay", *chosen, "--verify", "--app", APP, "--json").objects

    assert [one["verdict"] for one in verdicts if "verdict" in one] == ["same"] * 3


def test_a_worker_is_notified_of_new_runs_and_does_maintenance(
    logins: Logins, worker: Process
) -> None:
    url = logins("worker")
    checks = {check["name"]: check for check in done(url, "doctor", "--json").object["checks"]}
    done(url, "prune")

    assert checks["listen"]["state"] == "ok"
    assert checks["workers"]["message"].startswith("1 alive")


def test_a_service_serves_clients_and_workers_with_its_role(
    logins: Logins, installed: str, owner: Db
) -> None:
    handlers = Handlers()

    @handlers.handle("whole")
    def whole(ctx: Context, payload: int) -> int:
        ctx.progress(1, 2, "half")
        ctx.artifact("note.txt", b"small", "text/plain")
        return ctx.step("one", lambda: payload + 1)

    store = Store(DatabaseAddress(installed), jitter=jitter)
    with closing(store), serving(DatabaseAddress(logins("service")), store) as served:
        _, token = make_token(store)
        worker = Worker(handlers, served.url, token, executor="inline", log_level="error")
        thread = threading.Thread(target=worker.run)
        thread.start()
        with Client(served.url, token) as client:
            run = client.enqueue("whole", 1).id
            result = client.result(run, 60)
            artifacts = client.artifacts(run)
        worker.stop()
        thread.join(30)
    stored = owner.execute("select provenance from byrote_runs where result_id = %s", (run,))

    assert result == 2
    assert [one.name for one in artifacts] == ["note.txt"]
    assert stored.fetchall() != [(None,)]


READS = (
    ("runs", "list"), ("runs", "show", "{run}"), ("runs", "history", "{run}"), ("queues",),
    ("dead", "list"), ("dead", "show", "{dead}"), ("workers",), ("events",), ("schedules", "list"),
    ("schedules", "show", "pulse"), ("top", "--once"), ("doctor",), ("prune", "--dry-run"),
    ("runs", "artifacts", "{run}"),
)  # fmt: skip


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_a_reader_sees_lists_and_no_values(
    logins: Logins, owner: Db, installed: str, form: tuple[str, ...]
) -> None:
    run = done(installed, "enqueue", "secretive", '{"x": "MASKED"}').out.strip()
    dead = done(installed, "enqueue", "hopeless2", '{"x": "MASKED"}').out.strip()
    byrote("schedules", "add", "pulse", "t", '{"x": "MASKED"}', "--every", "1h", url=installed)
    fail(owner, dead)
    url = logins("read")
    for words in READS:
        said = done(url, *(word.format(run=run, dead=dead) for word in words), *form)
        assert said.out or form  # There may be none to list.
        assert "MASKED" not in said.out + said.err, words
    assert run in done(url, "runs", "list").out
    assert dead in done(url, "dead", "list").out


def fail(db: Db, run_id: str) -> None:
    leases = claim(db, 100, tasks=["hopeless2@1"])
    error = {"kind": "raised", "type": "ValueError", "message": "MASKED"}
    finish(db, [verdict(lease, "F", error=error) for lease in leases])


@pytest.mark.parametrize(
    "words", [("verify",), ("runs", "logs", "{run}"), ("runs", "cancel", "{run}"), ("enqueue", "t")]
)
def test_what_a_reader_may_not_do_is_refused_with_the_way_out(
    logins: Logins, installed: str, words: tuple[str, ...]
) -> None:
    run = done(installed, "enqueue", "t").out.strip()
    said = byrote(*(word.format(run=run) for word in words), url=logins("read"))

    assert said.code != 0
    assert "permission denied" in said.err
    assert "byrote doctor" in said.err


def test_an_enqueuer_adds_one_many_and_unique_runs(logins: Logins, enqueuer: App) -> None:
    url = logins("enqueue")
    one = enqueuer.enqueue(lives.small.spec(1))
    many = enqueuer.enqueue_many(lives.small.spec(n) for n in range(2_000))
    keyed = [enqueuer.enqueue(lives.small.using(unique_key="k").spec(1)).id for _ in range(2)]
    later = done(url, "enqueue", "small", "--after", "1h", "--unique-key", "z").out.strip()

    assert one.id != later
    assert len(many) == 2_000
    assert keyed[0] == keyed[1]


def test_an_enqueuer_without_rights_on_memos_gets_an_error_that_names_them(logins: Logins) -> None:
    url = logins("enqueue")
    said = enqueue_kept(url).stderr
    [rights] = [
        check
        for check in done(url, "doctor", "--json").object["checks"]
        if check["name"] == "rights"
    ]

    assert "permission denied" in said
    assert "`byrote doctor`, with the same URL, shows which role this login needs" in said
    assert "can enqueue;" in rights["message"]
    assert "enqueue tasks with a memo (needs byrote_worker)" in rights["message"]


FORGED = (
    "status, finished_at, return_json, result_hash", "leased_until, lease_token", "moves",
    "attempts", "errors_json", "memo_of", "shadow", "provenance", "cancel_requested_at",
    "worker_ids",
)  # fmt: skip


@pytest.mark.parametrize("columns", FORGED)
def test_an_enqueuer_cannot_forge_the_outcome_of_a_run(
    login: Callable[[str], Db], columns: str
) -> None:
    values = ", ".join(["null"] * (columns.count(",") + 1))
    text = (
        f"insert into byrote_task_runs (result_id, {columns}) values (gen_random_uuid(), {values})"  # noqa: S608
    )
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        login("enqueue").execute(text.encode())
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        login("enqueue").execute(
            "insert into byrote_events (at, kind, worker, runs, attempts, moves)"
            " values (now(), 'Claimed', 'w', '{}', '{}', '{}')"
        )


def test_no_status_but_ready_and_waiting_can_be_enqueued(login: Callable[[str], Db]) -> None:
    for status in ("RUNNING", "SUCCESSFUL", "FAILED", "CANCELLED"):
        with pytest.raises(psycopg.errors.CheckViolation):
            login("enqueue").execute(
                "insert into byrote_task_runs (result_id, queue_name, task_path, task_version,"
                " spec_json, spec_hash, run_after, rank, status, enqueued_at, max_attempts) values"
                " (gen_random_uuid(), 'q', 't', 1, '{}', sha256(''), now(), 1, %s, now(), 1)",
                (status,),
            )


@pytest.mark.parametrize(
    ("words", "role", "needed"),
    [
        (("worker", APP, "--hands", "1"), "enqueue", "byrote_worker"),
        (("worker", APP, "--hands", "1"), "read", "byrote_worker"),
        (("serve", "--port", "0"), "worker", "byrote_service"),
    ],
    ids=["enqueuer works", "reader works", "worker serves"],
)
def test_who_lacks_a_right_does_not_even_begin(
    logins: Logins, words: tuple[str, ...], role: str, needed: str
) -> None:
    """Else runs would be executed whose outcome cannot be stored."""
    with Process(*words, url=logins(role), folder=HERE) as process:
        said = process.ended()

    assert said.code == 3
    assert f"It needs the role {needed}" in said.err
