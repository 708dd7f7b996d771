# SPDX-License-Identifier: MIT
"""Faults between SDK and service: nothing is lost, one run per key, only holders finish."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from byrote.core.state import Status
from byrote.sdk import Client
from tests.cli.console import Process
from tests.faults.proxy import HttpProxy
from tests.sdk.harness import (
    Db,
    Service,
    ServiceProcess,
    StartSdkWorker,
    StartService,
    new_service_token,
)
from tests.support import count, run_of, until
from tests.worker.harness import ROOT, Marks, history

ENDED = """select count(*) from byrote_runs
           where status = 'SUCCESSFUL' and queue_name = 'default'"""
TWICE = """select count(*) from byrote_event_log
           where kind = 'Succeeded' group by result_id having count(*) > 1"""


class Producer:
    """Enqueues with keys, one after the other, until stopped; repeats every key."""

    def __init__(self, url: str, token: str) -> None:
        self._client = Client(url, token, timeout=60.0)
        self._stopped = threading.Event()
        self.accepted: dict[str, str] = {}
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.is_set():
            key = f"order-{len(self.accepted)}"
            self.accepted[key] = self._client.enqueue("a_echo", key, key=key).id

    def stop(self) -> dict[str, str]:
        """Keys and the runs that were accepted for them."""
        self._stopped.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
        for key, run_id in self.accepted.items():
            assert self._client.enqueue("a_echo", key, key=key).id == run_id
        self._client.close()
        return self.accepted


@contextmanager
def producing(url: str, token: str) -> Iterator[Producer]:
    producer = Producer(url, token)
    try:
        yield producer
    finally:
        producer._stopped.set()


def nothing_is_lost(db: Db, accepted: dict[str, str]) -> None:
    """Every accepted run succeeded, once, and no other run exists."""
    total = len(accepted)
    until(lambda: db.execute(ENDED).fetchone() == (total,), 60, every=0.1)

    assert len(set(accepted.values())) == total == count(db, "byrote_runs")
    assert db.execute(TWICE).fetchone() is None


def after_more(producer: Producer, count: int = 40) -> None:
    """Wait until so many more were accepted."""
    goal = len(producer.accepted) + count
    until(lambda: len(producer.accepted) >= goal, 60)


def test_a_service_killed_under_load_loses_nothing(
    service: Service, db: Db, start_sdk_worker: StartSdkWorker
) -> None:
    worker = start_sdk_worker(service.url, service.token, lease="2s")
    with producing(service.url, service.token) as producer:
        for _ in range(3):
            after_more(producer)
            service.process.kill()
            service.process.start()
        after_more(producer)
        accepted = producer.stop()

    nothing_is_lost(db, accepted)
    assert worker.logged("Troubled")
    assert worker.stop() == 0


def test_three_services_killed_in_turn_lose_nothing(
    start_service: StartService, db: Db, start_sdk_worker: StartSdkWorker
) -> None:
    token = new_service_token(db)
    services = [start_service() for _ in range(3)]
    for one in services:
        start_sdk_worker(one.url, token, lease="2s")
    with producing(services[0].url, token) as producer:
        for one in services:
            after_more(producer, 20)
            one.kill()
            one.start()
        after_more(producer, 20)
        accepted = producer.stop()

    nothing_is_lost(db, accepted)


@pytest.fixture
def proxy(service: Service) -> Iterator[HttpProxy]:
    made = HttpProxy(service.process.port)
    yield made
    made.close()


def cuts(proxy: HttpProxy, producer: Producer) -> None:
    for _ in range(8):
        after_more(producer, 10)
        proxy.cut()


def outages(proxy: HttpProxy, producer: Producer) -> None:
    for _ in range(3):
        after_more(producer, 20)
        goal = proxy.refused + 5
        proxy.sever()
        until(lambda goal=goal: proxy.refused >= goal, 30)  # type: ignore[misc]
        proxy.restore()


def delays(proxy: HttpProxy, producer: Producer) -> None:
    proxy.delay_s = 0.1
    after_more(producer, 20)
    proxy.cut()
    after_more(producer, 10)
    proxy.delay_s = 0.0


@pytest.mark.parametrize("trouble", [cuts, outages, delays], ids=lambda f: f.__name__)
def test_a_bad_network_between_sdk_and_service_loses_nothing(
    service: Service,
    proxy: HttpProxy,
    db: Db,
    *,
    start_sdk_worker: StartSdkWorker,
    trouble: Callable[[HttpProxy, Producer], None],
) -> None:
    worker = start_sdk_worker(proxy.url, service.token, lease="3s")
    with producing(proxy.url, service.token) as producer:
        trouble(proxy, producer)
        after_more(producer, 10)
        accepted = producer.stop()

    nothing_is_lost(db, accepted)
    assert worker.stop() == 0


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("verb", ["POST /v1/leases ", "/v1/leases/renew", "/v1/leases/finish"])
def test_a_worker_whose_exchange_is_lost_runs_each_run_once(
    service: Service,
    proxy: HttpProxy,
    db: Db,
    *,
    start_sdk_worker: StartSdkWorker,
    marks: Marks,
    verb: str,
    moment: Any,
) -> None:
    worker = start_sdk_worker(proxy.url, service.token, lease="2s")
    service.client.wait(service.client.enqueue("mark", [marks.path, "warm", 0]).id, 20)
    fault = proxy.plan(verb, moment)
    run = service.client.enqueue("mark", [marks.path, "once", 1.5 if "renew" in verb else 0])
    ended = service.client.wait(run.id, 30)
    until(fault.happened.is_set, 10)

    assert marks.words == ["warm", "once"]
    assert (ended.status, ended.charged) == (Status.SUCCESSFUL, 1)
    assert [kind for kind, _, _ in history(db, run.id)].count("Succeeded") == 1
    assert not worker.logged("LeaseRefused", run=run.id)


def test_the_finish_of_a_worker_cut_off_for_longer_than_its_lease_is_refused(
    service: Service,
    proxy: HttpProxy,
    db: Db,
    *,
    start_sdk_worker: StartSdkWorker,
    marks: Marks,
) -> None:
    lonely = start_sdk_worker(proxy.url, service.token, lease="1s", worker_id="lonely")
    run = service.client.enqueue("mark", [marks.path, "on", 4.0])
    marks.await_words(1)
    proxy.sever()
    start_sdk_worker(service.url, service.token, lease="1s", worker_id="other")
    marks.await_words(2, 20)
    proxy.restore()
    ended = service.client.wait(run.id, 30)

    assert (ended.status, ended.attempts, ended.worker_ids) == (
        Status.SUCCESSFUL,
        2,
        ["lonely", "other"],
    )
    assert [who for kind, _, who in history(db, run.id) if kind == "Succeeded"] == ["other"]
    assert lonely.process.poll() is None


def test_a_database_that_comes_back_is_found_again_by_itself(
    service: Service, db: Db, start_sdk_worker: StartSdkWorker
) -> None:
    worker = start_sdk_worker(service.url, service.token, lease="3s")
    with producing(service.url, service.token) as producer:
        for _ in range(3):
            after_more(producer, 20)
            db.execute(
                """select pg_terminate_backend(pid) from pg_stat_activity
                   where pid <> pg_backend_pid() and datname = current_database()"""
            )
        after_more(producer, 20)
        accepted = producer.stop()

    nothing_is_lost(db, accepted)
    assert worker.stop() == 0


def test_a_service_that_stops_sends_its_workers_nowhere(
    service: Service, db: Db, start_sdk_worker: StartSdkWorker
) -> None:
    worker = start_sdk_worker(service.url, service.token)
    process: ServiceProcess = service.process
    assert process.stop() == 0
    worker.await_log("Troubled")
    process.start()
    run = service.client.enqueue("echo", 1)

    assert service.client.result(run.id, 30) == 1
    assert run_of(db, run.id).attempts == 1


def test_a_worker_whose_token_is_refused_at_the_start_ends(
    service: Service, start_sdk_worker: StartSdkWorker
) -> None:
    worker = start_sdk_worker(service.url, "byr_" + "x" * 40, ready=False)

    assert worker.wait(30) != 0
    assert "token" in worker.text


def test_a_token_that_is_refused_for_a_while_costs_no_attempt(
    service: Service, db: Db, start_sdk_worker: StartSdkWorker
) -> None:
    worker = start_sdk_worker(service.url, new_service_token(db, "work"))
    db.execute("update byrote_tokens set revoked_at = now() where role = 'work'")
    worker.await_log("Troubled", what="claim")
    db.execute("update byrote_tokens set revoked_at = null where role = 'work'")
    run = service.client.enqueue("a_echo", 1).id
    service.client.wait(run, 30)

    assert worker.await_log("Recovered", what="claim")
    assert worker.stop() == 0


def test_a_service_does_not_start_on_a_read_only_database(url: str) -> None:
    read_only = make_conninfo(url, options="-c default_transaction_read_only=on")
    with Process("serve", "--port", "0", url=read_only, folder=ROOT) as process:
        said = process.ended()

    assert said.code == 1
    assert "is read-only" in said.err
