# SPDX-License-Identifier: MIT
"""Runs brought to every state by the statements that bring them there in earnest."""

from datetime import timedelta
from typing import Any

import msgspec
from django.utils.timezone import now

from byrote.assembly.identity import new_id
from byrote.core.json.diff import diff
from byrote.core.replay.verdict import Differs
from byrote.core.run import Leased
from byrote.core.state import Status
from byrote.django import compat
from byrote.django.admin import replays
from byrote.django.worker.verification import stored_form
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.django.shop import tasks
from tests.store.steps.test_artifact import keep
from tests.store.steps.test_step import line
from tests.support import Db, claim, success, verdict

ECHO = "tests.django.shop.tasks.echo"
TRACEBACK = 'Traceback (most recent call last):\n  File "shop.py", line 3, in pay\nValueError: no'


def lease(db: Db, worker: str = "w-1", task: str = ECHO) -> Leased:
    """The lease of the next run of a task."""
    [leased] = claim(db, worker=worker, tasks=[f"{task}@1"])
    return leased


def settle(db: Db, *verdicts: dict[str, Any]) -> None:
    fetch(db, queries.finish(list(verdicts)))


def ready(*args: Any, **kwargs: Any) -> str:
    return str(tasks.echo.enqueue(*args, **kwargs).id)


def waiting() -> str:
    return str(tasks.echo.using(run_after=now() + timedelta(hours=3)).enqueue().id)


def running(db: Db) -> str:
    ready()
    return lease(db).id


def successful(db: Db, result: str = '{"sum":1.0,"zero":-0.0,"big":1e22}') -> str:
    ready()
    leased = lease(db)
    settle(db, success(leased, result))
    return leased.id


def dead(db: Db, message: str = "no") -> str:
    ready(1, card="4242")
    leased = lease(db)
    error = {
        "kind": "raised",
        "type": "shop.errors.CardRefused",
        "message": message,
        "traceback": TRACEBACK,
        "attempt": leased.attempt,
        "worker": "w-1",
    }
    settle(db, verdict(leased, "F", error=error))
    return leased.id


def cancelled(db: Db) -> str:
    run_id = ready()
    fetch(db, queries.cancel([run_id]))
    return run_id


def archived(db: Db) -> str:
    """A run that ended some time ago."""
    run_id = successful(db)
    later = "update byrote_task_runs set finished_at = finished_at - interval '2 hours'"
    db.execute(later)
    fetch(db, queries.archive(after="00000000-0000-0000-0000-000000000000"))
    return run_id


def status_of(db: Db, run_id: str) -> str | None:
    found = fetch(db, queries.run(run_id))
    return str(found[0].status) if found else None


def register(db: Db, worker: str = "web-1-77", **more: Any) -> None:
    """A worker that has just announced itself."""
    description: dict[str, Any] = {
        "worker": worker, "host": "web-1", "pid": 77, "hands": 2, "concurrency": 8,
        "version": "0.1.0", "python": "3.13.0", "queues": ["default", "mail"], "tasks": [ECHO],
    }  # fmt: skip
    fetch(db, queries.register(description | more))


def environment(db: Db) -> int:
    doc = msgspec.json.encode({"python": {"version": "3.13.0"}, "byrote": "0.1.0"}).decode()
    [number] = fetch(db, queries.register_provenance(digest="ab" * 32, doc=doc))
    return number


BLINK = timedelta(milliseconds=20)


def failure(leased: Leased, **error: Any) -> dict[str, Any]:
    """The verdict of an attempt that failed for good."""
    told = {"kind": "raised", "type": "ValueError", "message": "no", "attempt": leased.attempt}
    return verdict(leased, "F", error=told | error)


def storied(db: Db) -> str:
    """A successful run that failed once, printed, took a step, and stored two artifacts."""
    tasks.echo.using(max_attempts=2).enqueue({"<script>": "alert(1)"})
    first = lease(db)
    error = {"kind": "raised", "type": "shop.Busy", "message": "<b>later</b>", "attempt": 1}
    output = {
        "stdout": "begun\n",
        "stderr": "warned <i>\n",
        "stdout_dropped": 7,
        "stderr_dropped": 0,
    }
    again = verdict(first, "R", delay_us=0, error=error | {"traceback": TRACEBACK}, output=output)
    settle(db, again)
    second = lease(db, worker="w-2")
    fetch(db, queries.step([line(second, 1, "charge", {"paid": True})]))
    for name, location in (("a/report.html", "postgres"), ("big.bin", "s3://bucket/big")):
        keep(
            db,
            second,
            name,
            b"<html>",
            location=location,
            sent=b"<html>" if location == "postgres" else None,
        )
    settle(db, success(second) | {"more": {"provenance": environment(db)}})
    return second.id


def verified(db: Db) -> str:
    """A run whose verification has found another result, by other code."""
    run_id = successful(db, '{"total":5,"items":["a"]}')
    [backend] = [one for one in compat.task_backends.all() if one.alias == "default"]
    spec = replays.request_for(backend.database, ECHO, "default", run_id)
    assert spec is not None
    fetch(db, queries.enqueue_verification(new_id(), spec, original=run_id))
    settle(db, success(lease(db, task=replays.PATH), verdict_json(run_id)))
    return run_id


def verdict_json(original: str) -> str:
    """What a verification has written that found a difference."""
    old, new = {"total": 5, "items": ["a"]}, {"total": "<6>", "items": ["a", "x" * 900]}
    found = Differs(
        original=original,
        replay=new_id(),
        task=f"{ECHO}@1",
        status=(Status.SUCCESSFUL, Status.SUCCESSFUL),
        result=diff(old, new),
        provenance=diff({"python": {"version": "3.13.0"}}, {"python": {"version": "3.13.1"}}),
    )
    return msgspec.json.encode(stored_form(found)).decode()
