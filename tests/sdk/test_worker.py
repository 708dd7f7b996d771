# SPDX-License-Identifier: MIT
"""The SDK's worker: the whole life of a run over HTTP."""

import hashlib
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from byrote.assembly.artifacts import artifact_of
from byrote.core import events as event
from byrote.core.errors import BadOption
from byrote.core.state import Status
from byrote.sdk import Context, Fatal, Handlers, Retry, Worker, new_run
from byrote.sdk.handlers import payload_of
from byrote.sdk.worker import path_of
from byrote.store import queries
from byrote.store.runners.sync import Store, fetch
from tests.sdk import handling
from tests.sdk.harness import Db, Service, StartSdkWorker, free_port, new_service_token
from tests.support import count, run_of, until
from tests.worker.harness import Marks, await_status, history

MOODY = Retry(attempts=3, delay_first=0.0)


def test_a_run_comes_back_as_the_handler_left_it(
    service: Service, start_sdk_worker: StartSdkWorker
) -> None:
    start_sdk_worker(service.url, service.token)
    client = service.client
    values = [None, 1.0, {"a": [1, 2.5, "ä\u0007"]}, 2**70]
    runs = [client.enqueue(task, value) for task in ("echo", "a_echo") for value in values]
    added = client.enqueue("add", args=[1], kwargs={"b": 41}, version=2)
    counted = client.enqueue("object", {"a": 1})

    assert [client.result(run.id, 20) for run in runs] == values + values
    assert client.result(added.id, 20) == 42
    assert client.result(counted.id, 20) == {"attempt": 1, "payload": {"a": 1}}


def test_the_error_contract_holds(
    service: Service, db: Db, start_sdk_worker: StartSdkWorker
) -> None:
    start_sdk_worker(service.url, service.token)
    client = service.client
    later, never, oops = [
        client.enqueue("moody", mood, retry=MOODY).id for mood in ("later", "never", "oops")
    ]
    ended = {run: client.wait(run, 30) for run in (later, never, oops)}

    assert ended[later].result == "attempt 2"
    assert (ended[never].status, ended[never].charged) == (Status.FAILED, 1)
    assert (ended[oops].status, ended[oops].charged) == (Status.FAILED, 3)
    assert {fault["type"] for fault in ended[oops].faults} == {"ValueError"}
    assert sorted(run.id for run in client.dead().runs) == sorted([never, oops])


def test_steps_and_sleeps_are_durable_over_http(
    service: Service, start_sdk_worker: StartSdkWorker
) -> None:
    start_sdk_worker(service.url, service.token)
    client = service.client
    stepping = client.enqueue("stepping", "x", retry=MOODY)
    sleeping = client.enqueue("sleeper", 0.3)

    assert client.result(stepping.id, 30) == ["by attempt 1", "by attempt 2", "x"]
    assert client.result(sleeping.id, 30) == 2


def test_a_lease_is_renewed_for_as_long_as_the_work_takes(
    service: Service, db: Db, start_sdk_worker: StartSdkWorker, marks: Marks
) -> None:
    worker = start_sdk_worker(service.url, service.token, lease="1s")
    run = service.client.enqueue("mark", [marks.path, "long", 3.0])
    ended = service.client.wait(run.id, 30)

    assert (ended.status, ended.attempts, marks.words) == (Status.SUCCESSFUL, 1, ["long"])
    assert [kind for kind, _, _ in history(db, run.id)].count("Renewed") >= 2
    assert not worker.logged("LeaseRefused")


def test_a_cancel_reaches_running_code(
    service: Service, db: Db, start_sdk_worker: StartSdkWorker, marks: Marks
) -> None:
    start_sdk_worker(service.url, service.token, lease="1s")
    run = service.client.enqueue("mark", [marks.path, "long", 60.0])
    marks.await_words(1)

    assert service.client.cancel(run.id) is True
    assert service.client.wait(run.id, 20).status is Status.CANCELLED


def test_a_stop_finishes_what_it_can_and_releases_the_rest(
    service: Service, db: Db, start_sdk_worker: StartSdkWorker, marks: Marks
) -> None:
    worker = start_sdk_worker(service.url, service.token, grace="2s", threads=2)
    quick, long = [
        service.client.enqueue("mark", [marks.path, "on", seconds]).id for seconds in (0.5, 60.0)
    ]
    marks.await_words(2)

    assert worker.stop() == 0
    assert run_of(db, quick).status is Status.SUCCESSFUL
    given_back = run_of(db, long)
    assert (given_back.status, given_back.charged, given_back.losses) == (Status.READY, 0, 0)
    assert count(db, "byrote_workers") <= 1  # The service itself may be on the list.


def test_a_killed_worker_loses_nothing(
    service: Service, db: Db, start_sdk_worker: StartSdkWorker, marks: Marks
) -> None:
    first = start_sdk_worker(service.url, service.token, lease="1s")
    run = service.client.enqueue("mark", [marks.path, "again", 2.0])
    marks.await_words(1)
    first.signal(signal.SIGKILL)
    start_sdk_worker(service.url, service.token, lease="1s")
    ended = service.client.wait(run.id, 30)

    assert (ended.status, ended.attempts, ended.losses) == (Status.SUCCESSFUL, 2, 1)


def test_tasks_unknown_to_this_worker_stay_for_others(
    service: Service, db: Db, start_sdk_worker: StartSdkWorker
) -> None:
    start_sdk_worker(service.url, service.token)
    unknown, newer = (
        service.client.enqueue("strange", 1),
        service.client.enqueue("echo", 1, version=2),
    )
    known = service.client.enqueue("echo", 1)
    service.client.wait(known.id, 20)

    assert service.client.get(unknown.id).status is Status.READY
    assert service.client.get(newer.id).status is Status.READY


def test_a_thousand_runs_are_executed_once_each_by_two_workers(
    service: Service, db: Db, start_sdk_worker: StartSdkWorker
) -> None:
    accepted = service.client.enqueue_many(new_run("a_echo", n) for n in range(1_000))
    for _ in range(2):
        start_sdk_worker(service.url, service.token, drain=True, ready=False)
    done = "select count(*) from byrote_runs where status = 'SUCCESSFUL' and attempts = 1"
    until(lambda: db.execute(done).fetchone() == (1_000,), 60, every=0.1)

    assert service.client.get(accepted[-1].id).result == 999


def test_artifacts_of_any_size_are_kept_with_their_run(
    service: Service, store: Store, start_sdk_worker: StartSdkWorker, tmp_path: Path
) -> None:
    worker = start_sdk_worker(
        service.url,
        service.token,
        environ={"TMPDIR": str(tmp_path), "BYROTE_ARTIFACT_MAX": "4MB"},
    )
    sizes = (1_000, 1 << 21, -(1 << 21), 1 << 23)
    runs = [service.client.enqueue("filing", size).id for size in sizes]
    for run, size in zip(runs[:3], sizes, strict=False):
        digest = service.client.result(run, 30)
        kept = artifact_of(store, run, "report/a.txt")
        assert digest == kept.hash == hashlib.sha256(b"x" * abs(size)).hexdigest()
        assert (kept.media_type, len(kept.read())) == ("text/plain", abs(size))
    refused = service.client.wait(runs[3], 30).faults[-1]["message"]

    assert "more than 4,194,304 bytes" in refused
    # What went through the worker's spool is gone from it; the task's own file is still there.
    assert [path.name for path in tmp_path.rglob("byrote-spool-*/*")] == []
    assert len(list(tmp_path.glob("own-*"))) == 1
    assert worker.stop() == 0
    assert list(tmp_path.glob("byrote-spool-*")) == []


def test_results_too_large_for_one_request_are_sent_apart(
    service: Service, start_sdk_worker: StartSdkWorker
) -> None:
    runs = service.client.enqueue_many([new_run("bulky", 3_000_000) for _ in range(4)])
    start_sdk_worker(service.url, service.token)
    ended = [service.client.wait(run.id, 60) for run in runs]

    assert [(run.status, run.attempts) for run in ended] == [(Status.SUCCESSFUL, 1)] * 4
    assert '"status":413' in service.process.text


def test_a_result_that_the_service_refuses_fails_the_run(
    service: Service, start_sdk_worker: StartSdkWorker
) -> None:
    run = service.client.enqueue("many", 1_100_000)
    other = service.client.enqueue("echo", 5)
    start_sdk_worker(service.url, service.token)
    ended = service.client.wait(run.id, 60)

    assert (ended.status, ended.attempts) == (Status.FAILED, 1)
    assert ended.faults[-1]["kind"] == "bad_result"
    assert "1,000,000" in ended.faults[-1]["message"]
    assert service.client.result(other.id, 30) == 5


def test_idle_workers_are_notified_of_work_at_once(
    service: Service, db: Db, start_sdk_worker: StartSdkWorker
) -> None:
    start_sdk_worker(service.url, service.token, poll_interval="20s", lease="100s")
    service.client.result(service.client.enqueue("echo", 0).id, 20)
    idle = "select 1 from byrote_workers where idle"
    until(lambda: db.execute(idle).fetchone(), 20)

    run = service.client.enqueue("echo", 1)
    assert service.client.result(run.id, 10) == 1


@pytest.mark.parametrize("role", ["read", "enqueue"])
def test_a_token_that_may_not_work_is_refused(
    service: Service, db: Db, start_sdk_worker: StartSdkWorker, role: str
) -> None:
    worker = start_sdk_worker(service.url, new_service_token(db, role), ready=False)

    assert (worker.wait(20), "needs `work`" in worker.text) == (2, True)


def test_an_unreachable_service_is_reported(start_sdk_worker: StartSdkWorker) -> None:
    worker = start_sdk_worker(f"http://127.0.0.1:{free_port()}", "byr_x", ready=False)

    assert worker.wait(20) == 75
    assert "did not answer" in worker.text


# -- In this process -------------------------------------------------------------------------------


@pytest.fixture
def inline(service: Service) -> Iterator[Any]:
    """Starts workers in this process, with handlers and hooks of the test's own."""
    started: list[tuple[Worker, threading.Thread]] = []

    def start(handlers: Handlers, **options: Any) -> Worker:
        worker = Worker(
            handlers, service.url, service.token, executor="inline", log_level="error", **options
        )
        thread = threading.Thread(target=worker.run)
        thread.start()
        started.append((worker, thread))
        until(lambda: worker.ready)
        return worker

    yield start
    for worker, thread in started:
        worker.stop()
        thread.join(15)
        assert not thread.is_alive()


def test_hooks_are_given_every_fact(service: Service, inline: Any) -> None:
    facts: list[event.Event] = []

    def hook(events: Sequence[event.Event]) -> None:
        facts.extend(events)

    inline(handling.handlers, hooks=[hook])
    run = service.client.enqueue("echo", 1)
    service.client.wait(run.id, 20)
    kinds = (event.Claimed, event.Succeeded)
    until(lambda: {type(fact) for fact in facts} >= {*kinds})

    assert [type(fact) for fact in facts if isinstance(fact, kinds)] == [*kinds]


def test_what_surrounds_a_handler_is_entered_and_left(service: Service, inline: Any) -> None:
    told: list[str] = []

    class Around:
        def __init__(self, ctx: Context) -> None:
            self._ctx = ctx

        def __enter__(self) -> None:
            told.append(f"enter {self._ctx.task}")

        def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
            told.append(f"leave {kind.__name__ if kind else 'well'}")

    handlers = Handlers(around=[Around])
    handlers.handle("good")(lambda _ctx, payload: payload)

    @handlers.task(name="bad")
    async def bad(n: int) -> None:
        raise Fatal("no")

    inline(handlers)
    for sent in ({"task": "good", "payload": 1}, {"task": "bad", "args": [1]}):
        service.client.wait(service.client.enqueue(**sent).id, 20)

    assert told == ["enter good", "leave well", "enter bad", "leave Fatal"]


def test_payloads_are_found_however_they_were_sent() -> None:
    assert payload_of([{"a": 1}], {}) == {"a": 1}
    assert payload_of([], {"a": 1}) == {"a": 1}
    assert payload_of([], {}) is None
    with pytest.raises(Fatal, match="one payload"):
        payload_of([1, 2], {})


def test_handlers_are_found_again_by_child_processes(tmp_path: Path) -> None:
    assert path_of(handling.handlers) == "tests.sdk.handling:handlers"
    with pytest.raises(BadOption, match="not a variable"):
        path_of(Handlers())


def test_an_object_that_is_not_a_handler_is_refused() -> None:
    with pytest.raises(BadOption, match="lacks `handle"):
        Handlers().handle("t")(object())  # type: ignore[type-var]


def test_a_released_run_is_executed_by_the_next_worker(
    service: Service, db: Db, inline: Any
) -> None:
    run = service.client.enqueue("echo", 1, run_after=0.2)
    inline(handling.handlers)

    assert service.client.result(run.id, 20) == 1
    assert fetch(db, queries.workers())
    await_status(db, run.id, Status.SUCCESSFUL)


def test_a_cancel_does_not_wait_for_the_next_renewal(
    service: Service, start_sdk_worker: StartSdkWorker, marks: Marks
) -> None:
    """With a lease of ten minutes the next renewal is minutes away."""
    start_sdk_worker(service.url, service.token, lease="10m")
    run = service.client.enqueue("mark", [marks.path, "long", 60.0])
    marks.await_words(1)
    service.client.cancel(run.id)

    assert service.client.wait(run.id, 20).status is Status.CANCELLED
