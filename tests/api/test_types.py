# SPDX-License-Identifier: MIT
"""Arguments and results of annotated types, from the caller through a worker and back."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from byrote import App, RunFailed, Same
from byrote.assembly.settings import Settings
from byrote.assembly.worker import build_worker
from byrote.core.errors import BadPayload
from byrote.core.json.codec import unpack
from tests.api.conftest import KEPT
from tests.support import Db, count
from tests.tasks import typed
from tests.tasks.typed import Address, Color, Customer, Order

type Drain = Callable[[], None]

ORDER = Order(UUID(int=1), Decimal("9.90"), Address(3000), frozenset("cab"))


@pytest.fixture
def app(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    """The app of tests/tasks/typed.py on this test's database."""
    monkeypatch.setattr(typed.app, "url", url)
    for name in KEPT:
        typed.app.__dict__.pop(name, None)
    yield typed.app
    typed.app.close()
    for name in KEPT:
        typed.app.__dict__.pop(name, None)


@pytest.fixture
def drain(app: App, url: str, monkeypatch: pytest.MonkeyPatch) -> Drain:
    """Run a worker in this process until nothing is left to do."""
    monkeypatch.chdir(Path(__file__).parents[2])
    settings = Settings(database_url=url, executor="inline")

    def work() -> None:
        build_worker("tests.tasks.typed:app", settings, emit=lambda _events: None, drain=True).run()

    return work


def test_a_task_receives_and_returns_its_annotated_types(app: App, drain: Drain) -> None:
    shipped = typed.ship.enqueue(ORDER, due=date(2026, 11, 1))
    customer = Customer(name="Ann", since=datetime(2026, 1, 1, tzinfo=UTC), address=Address(1))
    greeted, nothing = typed.greet.enqueue(customer), typed.nothing.enqueue()
    drain()

    result = shipped.result(timeout=5)
    assert (result.id, result.amount, result.tags) == (ORDER.id, ORDER.amount, ORDER.tags)
    assert result.extra == ["Address", "date"]
    assert greeted.result(timeout=5) == ("ANN", customer)
    assert nothing.result(timeout=5) is None


def test_a_handle_without_the_task_returns_plain_json(app: App, drain: Drain) -> None:
    run = typed.ship.enqueue(ORDER)
    drain()

    assert app.run(run.id).result(timeout=5)["amount"] == "9.90"
    assert run.refresh().result["tags"] == ["a", "b", "c"]


def test_what_does_not_fit_never_reaches_the_queue(app: App, db: Db) -> None:
    bad: Any = Order(UUID(int=1), Decimal(1), Address("3000"))  # type: ignore[arg-type]
    with pytest.raises(BadPayload, match=r"^\$\.order\.address\.zip: .*int; str was given\.$"):
        typed.ship.enqueue(bad)

    assert count(db, "byrote_task_runs") == 0


def test_any_inside_of_a_type_takes_plain_json_only(app: App) -> None:
    odd = Order(UUID(int=1), Decimal(1), Address(1), extra={1, 2})

    with pytest.raises(BadPayload, match=r"\.order\.extra: .*type set.*send a list"):
        typed.ship.spec(order=odd)


def test_equal_sets_have_equal_specs_keys_and_memos(app: App, drain: Drain) -> None:
    one, other = {Color.RED, Color.BLUE}, {Color.BLUE, Color.RED}
    first, same = typed.mix.enqueue(one), typed.mix.enqueue(other)
    drain()
    remembered = typed.mix.enqueue(other)

    assert unpack(typed.mix.spec(one).text)["args"] == [["blue", "red"]]
    assert (same.id, same.created) == (first.id, False)
    assert remembered.refresh().memo_of == first.id
    assert remembered.result(timeout=0) == one


def test_a_result_that_does_not_fit_its_annotation_is_a_bad_result(app: App, drain: Drain) -> None:
    run = typed.wrong.enqueue("2026-11-01")
    drain()

    with pytest.raises(RunFailed, match="annotation is date; str was given"):
        run.result(timeout=5)


def test_a_replay_receives_the_same_types(app: App, drain: Drain) -> None:
    run = typed.ship.enqueue(ORDER, due=date(2026, 11, 1))
    drain()

    assert isinstance(app.replay(run.id), Same)
