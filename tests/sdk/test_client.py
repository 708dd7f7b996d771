# SPDX-License-Identifier: MIT
"""The clients on a real service: every test runs on both."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from byrote.core.errors import BadOption, ResultTimeout, RunFailed, RunNotFound, ServiceUnreachable
from byrote.core.state import Status
from byrote.sdk import AsyncClient, Client, new_run
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.wire.problems import Forbidden, Invalid, KeyReused, NotFound, Unauthorized
from tests.faults.proxy import HttpProxy
from tests.sdk.harness import Db, ServiceProcess, free_port, new_service_token
from tests.store.test_locks import locked
from tests.support import claim, count, finish, history, register, run_of, success, verdict

SOMEBODY = "00000000-0000-7000-8000-000000000000"


def test_both_clients_have_the_same_verbs() -> None:
    def verbs(kind: type) -> set[str]:
        return {name for name in vars(kind) if not name.startswith("_")}

    assert verbs(Client) == verbs(AsyncClient)
    assert len(verbs(Client)) > 20
    assert all(Client.__dict__[name].__doc__ for name in verbs(Client))


def test_a_run_is_accepted_and_shown_as_it_was_sent(client: Any, db: Db) -> None:
    sent = client.enqueue(
        "t", {"a": 1.0}, queue="q", priority=3, timeout="2s", labels={"order": "42"}
    )
    run = client.get(sent.id)

    assert run == run_of(db, sent.id)
    assert (run.args, run.queue, run.priority, run.labels) == (
        [{"a": 1.0}],
        "q",
        3,
        {"order": "42"},
    )
    assert run.spec_hash == sent.spec_hash


def test_many_runs_are_accepted_in_order(client: Any, db: Db) -> None:
    accepted = client.enqueue_many(new_run("t", n) for n in range(1_200))

    assert count(db, "byrote_runs") == len(accepted) == 1_200
    assert client.get(accepted[700].id).args == [700]


def test_a_key_is_accepted_once(client: Any, db: Db) -> None:
    first = client.enqueue("t", 1, key="order-42")

    assert client.enqueue("t", 1, key="order-42") == first
    assert count(db, "byrote_runs") == 1
    with pytest.raises(KeyReused):
        client.enqueue("t", 2, key="order-42")


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_enqueue_whose_answer_is_lost_has_one_effect(
    kind: Any, db: Db, module_service: ServiceProcess, moment: Any
) -> None:
    proxy = HttpProxy(module_service.port)
    client = kind(proxy.url, new_service_token(db))
    client.enqueue("t", 0)
    fault = proxy.plan("POST /v1/runs", moment)
    sent = client.enqueue("t", 1)
    client.close()
    proxy.close()

    assert fault.happened.is_set()
    assert count(db, "byrote_runs") == 2
    assert history(db, sent.id) == ["Enqueued"]


def test_a_signal_whose_answer_is_lost_is_not_sent_twice(
    kind: Any, db: Db, module_service: ServiceProcess
) -> None:
    proxy = HttpProxy(module_service.port)
    client = kind(proxy.url, new_service_token(db))
    sent = client.enqueue("t", 0)
    proxy.plan("/signal", "after")
    with pytest.raises(ServiceUnreachable):
        client.signal(sent.id, "paid")
    client.close()
    proxy.close()

    assert count(db, "byrote_signals") == 1


def test_a_wait_ends_with_the_run(client: Any, db: Db) -> None:
    sent = client.enqueue("t", 1)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.result, sent.id, 30)
        [lease] = claim(db)
        finish(db, [success(lease, '{"a":1.0}')])

        assert waiting.result(30) == {"a": 1.0}


def test_a_result_of_null_is_a_result(client: Any, db: Db) -> None:
    sent = client.enqueue("t", 1)
    finish(db, [success(lease) for lease in claim(db)])

    assert client.result(sent.id, 10) is None
    assert client.get(sent.id).result_json == "null"


def test_a_wait_has_an_end(client: Any) -> None:
    sent = client.enqueue("t", 1)
    with pytest.raises(ResultTimeout, match=r"still READY after .* s\. No live worker serves"):
        client.result(sent.id, 0.2)


def test_a_failure_is_raised_with_what_is_known_of_it(client: Any, db: Db) -> None:
    sent = client.enqueue("t", 1)
    finish(db, [verdict(lease, "F") for lease in claim(db)])
    with pytest.raises(RunFailed, match="ValueError: no") as raised:
        client.result(sent.id, 10)

    assert raised.value.status == "FAILED"


def test_runs_are_cancelled_retried_and_replayed(client: Any, db: Db) -> None:
    sent = client.enqueue("t", 1)
    assert client.cancel(sent.id) is True
    assert client.cancel(sent.id) is False
    dead = client.enqueue("t", 2)
    finish(db, [verdict(lease, "F") for lease in claim(db)])
    assert [run.id for run in client.dead().runs] == [dead.id]
    assert client.retry(dead.id) is True
    assert client.get(dead.id).status is Status.READY
    again = client.replay(sent.id)

    assert client.get(again.id).replay_of == sent.id
    assert client.get(again.id).spec_json == client.get(sent.id).spec_json


def test_dead_letters_are_requeued_and_deleted(client: Any, db: Db) -> None:
    sent = client.enqueue_many([new_run("t", n) for n in range(3)])
    finish(db, [verdict(lease, "F") for lease in claim(db, 3)])
    one, two, three = [run.id for run in sent]

    assert [moved.id for moved in client.requeue([one])] == [one]
    assert client.delete([two]) == [two]
    assert [run.id for run in client.dead().runs] == [three]


def test_several_are_cancelled_at_once(client: Any) -> None:
    ids = [run.id for run in client.enqueue_many([new_run("t", n) for n in range(3)])]

    assert sorted(moved.id for moved in client.cancel_many([*ids, SOMEBODY])) == sorted(ids)


def test_runs_are_changed_by_filter_until_none_remain(client: Any, db: Db) -> None:
    ids = [run.id for run in client.enqueue_many(new_run("t", n) for n in range(1_001))]
    [other] = client.enqueue_many([new_run("u", labels={"tenant": "a"})])
    done = client.cancel_runs(task="t", since="1h")
    [labelled] = client.cancel_runs(labels={"tenant": "a"}, status="ready")

    assert [moved.id for moved in done] == ids
    assert ({moved.status for moved in done}, done.locked) == ({Status.CANCELLED}, [])
    assert labelled.id == other.id
    with pytest.raises(Invalid, match="Name a queue, task"):
        client.cancel_runs()


def test_dead_letters_are_retried_by_filter(client: Any, db: Db) -> None:
    sent = client.enqueue("t")
    finish(db, [verdict(lease, "F") for lease in claim(db)])
    later = datetime.now(UTC) + timedelta(hours=1)

    assert client.retry_runs(task="t", since=later) == []
    assert client.runs(since=later).runs == []
    assert [moved.id for moved in client.retry_runs(task="t", since="1h")] == [sent.id]
    assert run_of(db, sent.id).status is Status.READY


def test_a_queue_is_purged_and_its_retention_is_set(client: Any) -> None:
    sent = client.enqueue("t", queue="mail")
    kept = client.set_retention("mail", keep_done=timedelta(days=7), keep_dead="180d")

    assert [moved.id for moved in client.purge("mail")] == [sent.id]
    assert (kept.keep_done_s, kept.keep_dead_s) == (604_800, 15_552_000)
    with pytest.raises(NotFound, match=r"No queue named 'nope'\. Known: mail"):
        client.purge("nope")
    with pytest.raises(BadOption, match="keep_done"):
        client.set_retention("mail", keep_done="soon")


def test_pages_go_on_where_the_last_one_ended(client: Any) -> None:
    ids = [run.id for run in client.enqueue_many([new_run("t", n) for n in range(5)])]
    first = client.runs(limit=3, task="t")
    second = client.runs(limit=3, task="t", cursor=first.next)

    assert [run.id for run in [*first.runs, *second.runs]] == ids[::-1]
    assert second.next is None


def test_runs_are_found_by_a_label(client: Any) -> None:
    wanted = client.enqueue("t", 1, labels={"order": "42"})
    client.enqueue("t", 1, labels={"order": "43"})

    assert [run.id for run in client.runs(label=("order", "42")).runs] == [wanted.id]


def test_queues_are_paused_and_seen(client: Any, db: Db) -> None:
    client.enqueue("t", 1, queue="mail/out")
    register(db, "w", "mail/out")
    assert client.pause("mail/out").paused is True
    assert claim(db, queues=["mail/out"]) == []
    assert client.resume("mail/out").paused is False
    [queue] = [queue for queue in client.queues() if queue.queue == "mail/out"]

    assert queue.ready == 1


def test_workers_stats_and_oneself_are_seen(client: Any, db: Db) -> None:
    register(db, "w", "default")

    assert "w" in [worker.worker for worker in client.workers()]
    assert client.stats(window="5m").window_s == 300
    assert client.whoami().role == "admin"


def test_a_signal_reaches_a_run(client: Any, db: Db) -> None:
    sent = client.enqueue("t", 1)
    assert client.signal(sent.id, "paid", {"sum": 1.0}) is True
    fetch(db, queries.cancel([sent.id]))

    assert client.signal(sent.id, "paid") is False


def test_the_events_of_a_run_are_returned_in_order(client: Any, db: Db) -> None:
    sent = client.enqueue("t", 1)
    finish(db, [success(lease) for lease in claim(db)])

    assert [event.kind for event in client.events(sent.id)] == ["Enqueued", "Claimed", "Succeeded"]


def test_a_stream_is_resumed_where_it_broke(
    kind: Any, db: Db, module_service: ServiceProcess
) -> None:
    proxy = HttpProxy(module_service.port)
    client = kind(proxy.url, new_service_token(db))
    first = client.enqueue("t", 1)
    start = client.events(first.id)[0].id
    stream = client.stream(after=start)
    second = client.enqueue("t", 2)
    heard = [next(stream)]
    proxy.cut()
    third = client.enqueue("t", 3)
    heard.append(next(stream))
    stream.close()
    client.close()
    proxy.close()

    assert [(event.kind, event.run) for event in heard] == [
        ("Enqueued", second.id),
        ("Enqueued", third.id),
    ]


def test_a_run_that_is_not_there_is_an_unknown_run(client: Any) -> None:
    for verb in (client.get, client.cancel, client.retry, client.replay):
        with pytest.raises(RunNotFound):
            verb(SOMEBODY)


def test_the_services_refusals_are_raised_as_what_they_are(
    kind: Any, db: Db, module_service: ServiceProcess
) -> None:
    reader = kind(module_service.url, new_service_token(db, "read"))
    stranger = kind(module_service.url, "byr_nobody")
    with pytest.raises(Forbidden):
        reader.enqueue("t", 1)
    with pytest.raises(Unauthorized):
        stranger.queues()
    sender = kind(module_service.url, new_service_token(db))
    with pytest.raises(Invalid, match=r"\$\.priority"):
        sender.enqueue("t", 1, priority=1_000)
    for client in (reader, stranger, sender):
        client.close()


def test_a_service_that_is_not_there_is_named(kind: Any) -> None:
    place = f"http://127.0.0.1:{free_port()}"
    client = kind(place, "byr_x", timeout=0.3)
    with pytest.raises(ServiceUnreachable, match=place):
        client.queues()
    client.close()


@pytest.mark.parametrize("url", ["ftp://host", "localhost:8700", "http://"])
def test_a_malformed_address_is_refused(kind: Any, url: str) -> None:
    with pytest.raises(BadOption, match="address of a service"):
        kind(url, "byr_x")


def test_batches_name_the_runs_that_are_locked(client: Any, address: DatabaseAddress) -> None:
    stuck, other = [run.id for run in client.enqueue_many([new_run("t", n) for n in range(2)])]
    with locked(address, "byrote_task_runs", "result_id", stuck):
        done = client.cancel_many([stuck, other])
    again = client.cancel_many([stuck, other])

    assert ([moved.id for moved in done], done.locked) == ([other], [stuck])
    assert ([moved.id for moved in again], again.locked) == ([stuck], [])


def test_dead_letters_that_are_locked_are_named(
    client: Any, db: Db, address: DatabaseAddress
) -> None:
    stuck, other = [run.id for run in client.enqueue_many([new_run("t", n) for n in range(2)])]
    finish(db, [verdict(lease, "F") for lease in claim(db, 2)])
    with locked(address, "byrote_dead", "result_id", stuck):
        done = client.delete([stuck, other])

    assert (done, done.locked) == ([other], [stuck])
    assert client.delete([stuck]) == [stuck]
