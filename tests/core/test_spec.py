# SPDX-License-Identifier: MIT
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import pytest

from byrote.assembly.identity import new_id
from byrote.core.errors import BadOption, BadPayload, PayloadTooLarge
from byrote.core.json.codec import digest_of, unpack
from byrote.core.policy import Retry
from byrote.core.spec import Delivery, check_name, describe
from byrote.store import queries

pytestmark = pytest.mark.pure

PLAIN = Delivery()
OTHERWISE = [
    Delivery(queue="mail"),
    Delivery(priority=9),
    Delivery(run_after=timedelta(hours=1)),
    Delivery(run_after=datetime(2030, 1, 1, tzinfo=UTC)),
    Delivery(timeout=timedelta(seconds=3)),
    Delivery(retry=Retry(attempts=9)),
    Delivery(labels={"a": "b"}),
    Delivery(traceparent="00-1-2-01"),
]


@pytest.mark.parametrize("delivery", OTHERWISE)
def test_delivery_is_not_part_of_a_specs_identity(delivery: Delivery) -> None:
    plain = describe("t", 1, [1], {"a": 2}, delivery=PLAIN)
    other = describe("t", 1, [1], {"a": 2}, delivery=delivery)

    assert (other.digest, other.text) == (plain.digest, plain.text)
    assert other != plain


@pytest.mark.parametrize(
    ("task", "version", "args", "kwargs"),
    [
        ("u", 1, [1], {"a": 2}),
        ("t", 2, [1], {"a": 2}),
        ("t", 1, [2], {"a": 2}),
        ("t", 1, [1, 1], {"a": 2}),
        ("t", 1, [1], {"a": 3}),
        ("t", 1, [1], {"b": 2}),
        ("t", 1, [], {}),
    ],
)
def test_what_is_computed_is_the_identity(
    task: str, version: int, args: list[Any], kwargs: dict[str, Any]
) -> None:
    plain = describe("t", 1, [1], {"a": 2}, delivery=PLAIN)

    assert describe(task, version, args, kwargs, delivery=PLAIN).digest != plain.digest


def test_the_order_of_keywords_is_kept_but_does_not_change_the_hash() -> None:
    one = describe("t", 1, [], {"a": 1, "b": 2}, delivery=PLAIN)
    two = describe("t", 1, [], {"b": 2, "a": 1}, delivery=PLAIN)

    assert one.digest == two.digest == digest_of(two.text)
    assert list(unpack(two.text)["kwargs"]) == ["b", "a"]


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (float("nan"), r"args\[0\].*send null or a string"),
        (b"bytes", "base64"),
        ({1, 2}, "a list"),
        ((1, 2), "a list"),
        (datetime(2030, 1, 1, tzinfo=UTC), "isoformat"),
        ("\ud800", "valid Unicode"),
        ({1: 2}, r"str\(key\)"),
        (object(), "plain values"),
    ],
)
def test_a_value_that_would_not_arrive_as_sent_is_refused_with_a_way_out(
    value: object, advice: str
) -> None:
    with pytest.raises(BadPayload, match=advice):
        describe("t", 1, [value], {}, delivery=PLAIN)


def test_a_payload_over_the_limit_is_refused_with_its_size() -> None:
    with pytest.raises(PayloadTooLarge, match="send a reference") as refused:
        describe("t", 1, ["x" * 2_000], {}, delivery=PLAIN, limit=1_000)

    assert refused.value.size > 2_000
    assert refused.value.limit == 1_000


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"queue": ""}, "not a queue name"),
        ({"queue": "a b"}, "not a queue name"),
        ({"queue": "q" * 201}, "not a queue name"),
        ({"queue": "q\n"}, "not a queue name"),
        ({"queue": 7}, "not a queue name"),
        ({"priority": 101}, "-100 to 100"),
        ({"priority": 1.5}, "-100 to 100"),
        ({"priority": True}, "-100 to 100"),
        ({"run_after": datetime(2030, 1, 1)}, "time zone"),  # noqa: DTZ001
        ({"run_after": "soon"}, "duration"),
        ({"run_after": timedelta.max}, "100 years"),
        ({"run_after": timedelta(seconds=-1)}, "100 years"),
        ({"timeout": 0}, "1 ms and 30 days"),
        ({"timeout": "31d"}, "1 ms and 30 days"),
        ({"timeout": "quick"}, "duration"),
        ({"labels": {"a": 1}}, "strings"),
        ({"labels": {"a": "\x00"}}, "printed"),
        ({"labels": {"a": "x" * 501}}, "500"),
        ({"labels": {str(n): "" for n in range(33)}}, "32"),
        ({"traceparent": "00-\x00"}, "traceparent"),
    ],
)
def test_a_delivery_that_makes_no_sense_is_refused(bad: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Delivery(**bad)


def test_a_delay_and_a_timeout_may_be_written_as_people_write_them() -> None:
    how = Delivery(run_after="10m", timeout="1.5s")  # type: ignore[arg-type]

    assert (how.run_after, how.timeout) == (timedelta(minutes=10), timedelta(seconds=1.5))


def test_labels_may_be_any_mapping() -> None:
    spec = describe("t", 1, [], {}, delivery=Delivery(labels=MappingProxyType({"a": "b"})))

    assert '"labels":{"a":"b"}' in queries.enqueue([(new_id(), spec)]).args["runs"]


@pytest.mark.parametrize("name", ["a", "shop.tasks.send", "a/b:c-d_e", "9", "_", "A" * 200])
def test_ordinary_names_are_names(name: str) -> None:
    assert check_name("task", name) == name


@pytest.mark.parametrize("name", ["", ".", "a.", "-a", "a b", "a\n", "é", "a@1", "a;b", None])
def test_surprising_names_are_refused(name: object) -> None:
    with pytest.raises(BadOption, match="not a task name"):
        check_name("task", name)


def test_a_wrong_timeout_is_quoted_in_seconds() -> None:
    with pytest.raises(BadOption, match="30 days, not 0 s"):
        Delivery(timeout=timedelta(0))
