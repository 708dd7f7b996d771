# SPDX-License-Identifier: MIT
"""Unique keys through the SDK."""

from collections.abc import Iterator

import pytest

from byrote.sdk import Client, new_run
from byrote.wire.problems import Invalid
from tests.sdk.harness import Db, ServiceProcess, new_service_token
from tests.support import claim, count, finish, success


@pytest.fixture
def client(db: Db, module_service: ServiceProcess) -> Iterator[Client]:
    with Client(module_service.url, new_service_token(db)) as made:
        yield made


def test_a_client_is_given_the_run_that_holds_the_key(client: Client, db: Db) -> None:
    first = client.enqueue("report", kwargs={"month": 11}, unique_key="report:11")
    second = client.enqueue("report", kwargs={"month": 12}, unique_key="report:11")

    assert (first.created, second.created) == (True, False)
    assert (second.id, second.spec_hash) == (first.id, first.spec_hash)
    assert client.get(first.id).unique_key == "report:11"
    [lease] = claim(db, tasks=["report@1"])
    finish(db, [success(lease, "42")])
    assert client.result(second.id, timeout=5) == 42
    assert client.enqueue("report", kwargs={"month": 12}, unique_key="report:11").created


def test_many_have_each_key_once(client: Client, db: Db) -> None:
    sent = [new_run("t", n, unique_key=None if n % 2 else "k") for n in range(1_500)]
    runs = client.enqueue_many(sent)

    assert sum(run.created for run in runs) == 751
    assert {run.id for run in runs[::2]} == {runs[0].id}
    assert count(db, "byrote_runs") == 751


def test_a_bad_key_is_refused_by_the_service(client: Client) -> None:
    with pytest.raises(Invalid, match="1 to 200 printable"):
        client.enqueue("t", unique_key="a\nb")
