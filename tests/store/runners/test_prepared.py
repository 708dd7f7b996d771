# SPDX-License-Identifier: MIT
"""What goes past psycopg's cursor arrives as it would have through it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.conninfo import make_conninfo

from byrote.assembly.identity import jitter, new_id
from byrote.core.spec import Delivery, describe
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.query import numbered, statement
from byrote.store.runners.prepared import PreparedRunner, as_text
from byrote.store.runners.sync import Store, fetch
from tests.support import enqueue

type Db = psycopg.Connection[Any]

TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=8)
LISTS = {
    "text[]": st.lists(TEXT | st.sampled_from(["NULL", "", '"', "\\", "{a,b}", " "]) | st.none()),
    "bigint[]": st.lists(st.integers(-(2**63), 2**63 - 1) | st.none()),
    "bytea[]": st.lists(st.binary(max_size=8)),
    "interval[]": st.lists(st.timedeltas(timedelta(days=-9999), timedelta(days=9999))),
}


def arrived(db: Db, value: object, kind: str) -> Any:
    text = as_text(value)
    statement = f"select %s::{kind}"
    row = db.execute(statement, [text and text.decode()], binary=True).fetchone()  # type: ignore[call-overload]
    return row and row[0]


@pytest.mark.parametrize("kind", LISTS)
def test_every_element_of_a_list_arrives(db: Db, kind: str) -> None:
    @settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow], deadline=None)
    @given(LISTS[kind])
    def check(sent: list[Any]) -> None:
        assert arrived(db, sent, kind) == sent

    check()


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "text"),
        ("é\\x00'\"", "text"),
        (Status.READY, "text"),
        (2**62, "bigint"),
        (True, "boolean"),
        (False, "boolean"),
        (-0.5, "float8"),
        (b"\x00\xff", "bytea"),
        (datetime(2031, 1, 2, 3, 4, 5, 6, tzinfo=UTC), "timestamptz"),
        (timedelta(days=-1, seconds=3, microseconds=5), "interval"),
        (timedelta(days=999_999), "interval"),
    ],
)
def test_every_kind_of_parameter_arrives(db: Db, value: object, kind: str) -> None:
    assert arrived(db, value, kind) == value


def test_a_percent_sign_is_written_twice_for_a_cursor_and_sent_once() -> None:
    assert b"like 'byrote\\_%%'" in statement("verify_catalog")
    assert b"like 'byrote\\_%'" in numbered("verify_catalog")[0]


def test_what_no_statement_takes_is_refused_here() -> None:
    with pytest.raises(TypeError, match="No statement takes"):
        as_text({"a": 1})


def test_rows_are_read_as_through_a_cursor(db: Db) -> None:
    enqueue(db, 3, labels={"a": "ö"}, timeout=timedelta(seconds=2))
    poster = PreparedRunner()
    found = poster.fetch(db, queries.runs())

    assert len(found) == 3
    assert found == poster.fetch(db, queries.runs()) == fetch(db, queries.runs())
    assert poster.fetch(db, queries.runs(queue="none")) == []


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_text_arrives_under_any_client_encoding(
    url: str, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", encoding)
    told = make_conninfo(url, client_encoding=encoding)
    for address in (
        DatabaseAddress(url),
        DatabaseAddress(told),
        DatabaseAddress(told, pooled=True),
    ):
        store = Store(address, jitter=jitter)
        spec = describe("t", 1, ["é日本"], {}, delivery=Delivery())
        store.accept([(run_id := new_id(), spec)])
        [run] = store.all(queries.run(run_id))
        store.close()

        assert run.spec_json == spec.text


def test_a_connection_that_has_gone_is_not_remembered(url: str, db: Db) -> None:
    poster = PreparedRunner()
    for _ in range(3):
        with psycopg.connect(url, autocommit=True) as other:
            assert poster.fetch(other, queries.runs()) == []
        del other

    assert len(poster._connections) <= 1
