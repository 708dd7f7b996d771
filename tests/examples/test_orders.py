# SPDX-License-Identifier: MIT
"""The sample that writes to the database, with a worker killed between commit and finish."""

import signal
from collections.abc import Iterator

import pytest

from byrote.core.state import Status
from tests.faults.proxy import HttpProxy
from tests.sdk.harness import Db, Service, StartSdkWorker
from tests.support import until

TABLES = """
create table shop_orders (customer text, total numeric);
create table shop_customers (customer text primary key, orders integer not null);
insert into shop_customers values ('ada', 0);
"""


@pytest.fixture
def shop(db: Db) -> Iterator[Db]:
    """The tables of the sample."""
    db.execute(TABLES)
    yield db
    db.execute("drop table shop_orders, shop_customers")


def written(db: Db) -> tuple[int, int]:
    text = "select (select count(*) from shop_orders), orders from shop_customers"
    [row] = db.execute(text).fetchall()
    return row[0], row[1]


def start(service: Service, start_sdk_worker: StartSdkWorker, url: str, at: str = "") -> object:
    return start_sdk_worker(
        at or service.url,
        service.token,
        handlers="examples.handlers.orders:handlers",
        environ={"ORDERS_DATABASE_URL": url},
        lease="1s",
    )


def test_an_order_is_written_once_though_its_worker_died_after_the_commit(
    service: Service, shop: Db, url: str, start_sdk_worker: StartSdkWorker
) -> None:
    proxy = HttpProxy(service.process.port)
    first = start(service, start_sdk_worker, url, proxy.url)
    fault = proxy.plan("/v1/leases/finish", "before")
    run = service.client.enqueue("record_order", {"customer": "ada", "total": "12.50"})
    until(fault.happened.is_set, 20)
    assert written(shop) == (1, 1)
    first.signal(signal.SIGKILL)  # type: ignore[attr-defined]
    proxy.close()
    start(service, start_sdk_worker, url)
    ended = service.client.wait(run.id, 30)

    assert written(shop) == (1, 1)
    assert ended.status is Status.SUCCESSFUL
    assert ended.attempts == 1 or ended.result == {"written": False}


def test_two_orders_are_two_and_nonsense_is_none(
    service: Service, shop: Db, url: str, start_sdk_worker: StartSdkWorker
) -> None:
    start(service, start_sdk_worker, url)
    payloads = [{"customer": "ada", "total": "1"}, {"customer": "ada", "total": "1"}, {"total": 1}]
    runs = [service.client.enqueue("record_order", payload).id for payload in payloads]
    ended = [service.client.wait(run, 30) for run in runs]

    assert written(shop) == (2, 2)
    assert [run.status for run in ended] == [Status.SUCCESSFUL, Status.SUCCESSFUL, Status.FAILED]
