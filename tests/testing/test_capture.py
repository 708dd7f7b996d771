# SPDX-License-Identifier: MIT
import asyncio
import threading

import pytest

from byrote import App
from byrote.core.errors import BadArguments, UnknownQueue
from byrote.core.spec import Delivery, describe
from byrote.testing import assert_enqueued, assert_not_enqueued, captured_tasks
from byrote.testing.capture import OnlyCaptured

pytestmark = pytest.mark.pure

HERE = "tests.testing.test_capture"
app = App("postgresql://nobody@127.0.0.1:1/nothing", queues=["default", "mail"])


@app.task
def welcome(name: str, *, polite: bool = True) -> None:
    del name, polite


@app.task(queue="mail")
def remind(name: str) -> None:
    del name


def test_enqueued_calls_are_recorded_and_not_sent() -> None:
    with captured_tasks(app) as calls:
        welcome.enqueue("ada", polite=False)
        remind.using(priority=5, run_after="1h", labels={"a": "b"}).enqueue("bob")

    assert [str(call) for call in calls] == [
        f"{HERE}.welcome('ada', polite=False)",
        f"{HERE}.remind('bob')",
    ]
    assert (calls[1].queue, calls[1].priority, calls[1].labels) == ("mail", 5, {"a": "b"})
    assert calls[0].id != calls[1].id


def test_every_way_to_enqueue_is_captured() -> None:
    async def later() -> None:
        await welcome.aenqueue("a")
        await app.aenqueue_many([welcome.spec("b")])

    with captured_tasks(app) as calls:
        asyncio.run(later())
        app.enqueue_many(welcome.spec(name) for name in "cd")
        thread = threading.Thread(target=lambda: welcome.enqueue("e"))
        thread.start()
        thread.join()

    assert [call.args for call in calls] == [["a"], ["b"], ["c"], ["d"], ["e"]]


def test_the_app_enqueues_as_before_after_the_block() -> None:
    with captured_tasks(app):
        with captured_tasks(app) as inner:
            welcome.enqueue("inner")
        welcome.enqueue("outer")
        assert_enqueued(app, welcome, "outer", count=1)
        assert_enqueued(app, welcome, count=2)

    assert [call.args for call in inner] == [["inner"]]
    assert not {"enqueue", "aenqueue", "enqueue_many", "store", "astore"} & vars(app).keys()


def test_what_the_app_refuses_is_refused_in_a_test() -> None:
    with captured_tasks(app) as calls:
        with pytest.raises(BadArguments):
            welcome.enqueue()  # type: ignore[call-arg]
        with pytest.raises(UnknownQueue):
            welcome.using(queue="mali").enqueue("a")

    assert calls == []


def test_a_captured_run_has_no_status() -> None:
    with captured_tasks(app):
        run = welcome.enqueue("a")
        with pytest.raises(OnlyCaptured, match="run_tasks"):
            run.refresh()


def test_a_call_is_found_by_position_or_name() -> None:
    with captured_tasks(app):
        welcome.enqueue("ada")

        found = assert_enqueued(app, welcome, name="ada")
        assert_enqueued(app, welcome)
        assert_enqueued(app, welcome, "ada", polite=True)
        assert_enqueued(app, remind, count=0)
        assert_not_enqueued(app, welcome, "ada", polite=False)

    assert found is not None
    assert found.args == ["ada"]


def test_a_missing_call_shows_what_was_enqueued() -> None:
    with captured_tasks(app):
        with pytest.raises(
            AssertionError, match=rf"^{HERE}.welcome was not enqueued. Nothing is enqueued"
        ):
            assert_enqueued(app, welcome)
        remind.enqueue("eve")
        welcome.enqueue("bob")
        with pytest.raises(AssertionError) as missing:
            assert_enqueued(app, welcome, "ada")
        with pytest.raises(AssertionError, match="welcome was enqueued 1 times, not 2"):
            assert_enqueued(app, welcome, count=2)
        with pytest.raises(AssertionError, match=r"welcome\('bob'\) was enqueued\."):
            assert_not_enqueued(app, welcome)

    assert str(missing.value) == (
        f"{HERE}.welcome('ada') was not enqueued. Enqueued:\n"
        f"  {HERE}.welcome('bob')\n  {HERE}.remind('eve')"
    )


def test_a_call_under_an_alias_of_the_task_counts() -> None:
    sent = describe("welcome", 1, ["ada"], {}, delivery=Delivery())
    with captured_tasks(app):
        app.enqueue(sent)
        assert_enqueued(app, welcome, "ada", count=1)
        assert_not_enqueued(app, remind)
