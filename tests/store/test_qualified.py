# SPDX-License-Identifier: MIT
"""Every statement and function works whatever the search path is."""

import psycopg
import pytest

from byrote.core.errors import BadOption
from byrote.core.text.schema_name import checked_schema, quoted
from byrote.store.connect import DatabaseAddress
from byrote.store.qualified import qualified
from byrote.store.query import _files, explanation, numbered, numbered_as_text
from tests.homes import HOSTILE, home_in

MORE = ["UPPER", "select", "a b", 'q"u"o', "é" * 31, "x" * 63, "per%cent", "a$b".replace("$", "_")]


def test_no_statement_needs_the_search_path(url: str) -> None:
    """On a search path without any table of ours, and with a temporary one that would hide it."""
    home_in(url)
    with psycopg.connect(url, autocommit=True) as elsewhere:
        elsewhere.execute("set search_path to pg_catalog")
        elsewhere.execute("create temporary table byrote_task_runs (wrong text)")
        for name in _files():
            elsewhere.execute(explanation(name, HOSTILE), dict.fromkeys(numbered(name)[1]))
            sql, names_ = numbered(name, HOSTILE)
            nothing = [None] * len(names_)
            answer = elsewhere.pgconn.exec_params(b"explain " + sql, nothing)
            assert answer.status == psycopg.pq.ExecStatus.TUPLES_OK, (name, answer.error_message)


def test_no_function_needs_the_search_path(url: str) -> None:
    with home_in(url, "own").open("test") as connection:
        text = "select proname, prosrc from pg_proc where pronamespace = 'own'::regnamespace"
        found = connection.execute(text).fetchall()
        connection.execute("drop schema own cascade")
    bare = [name for name, body in found if qualified(body.encode(), b"x") != body.encode()]

    assert len(found) > 15
    assert bare == []


def test_texts_comments_and_qualified_names_stay_as_they_are() -> None:
    text = b"select 'byrote_now', x.byrote_now() -- byrote_now\nfrom byrote_runs, byrote_enqueue"

    assert qualified(text, b"s") == text.replace(b"byrote_runs", b"s.byrote_runs")


def test_parameters_in_the_name_of_a_schema_are_not_parameters() -> None:
    for schema in ("%(id)s", "a%%b"):
        sql, parameters = numbered("is_accepted", schema)
        assert f'from "{schema}".byrote_runs'.encode() in sql
        assert parameters == ["id"]
    assert '"$1"' in numbered_as_text("is_accepted", "$1")[0]


@pytest.mark.parametrize("name", MORE)
def test_a_strange_name_is_handled(url: str, name: str) -> None:
    address = home_in(url, name)
    try:
        with address.open("test") as connection:
            row = connection.execute("select current_schema(), byrote_home()").fetchone()
            made = "select count(*) from pg_class where relnamespace = %s::regnamespace"
            [[tables]] = connection.execute(made, (quoted(name),)).fetchall()
        with psycopg.connect(url) as elsewhere:
            calls = f"select {quoted(name)}.byrote_make_partitions(20)".replace("%", "%%")
            elsewhere.execute(calls.encode(), {})

        assert row == (name, name)
        assert tables > 100
    finally:
        with psycopg.connect(url) as connection:
            connection.execute(f"drop schema {quoted(name)} cascade".encode())


@pytest.mark.parametrize(
    "name",
    ["", "x" * 64, "é" * 32, "pg_byrote", "information_schema", "$user", "a\nb", "a\0b",
     "byrote_home.x", 5],
)  # fmt: skip
def test_a_name_that_cannot_work_is_refused_with_the_reason(name: object) -> None:
    with pytest.raises(BadOption, match="Write a name such as 'byrote'"):
        checked_schema(name)
    with pytest.raises(BadOption):
        DatabaseAddress("postgresql://", schema=name)  # type: ignore[arg-type]
