# SPDX-License-Identifier: MIT
"""No login gets more than its role: not through our functions, their names, or the clock."""

from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest

from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.support import Db, claim, count, enqueue, finish, success, until

type Login = Callable[[str], Db]

DEFINERS = {"byrote_make_partitions", "byrote_drop_partitions", "byrote_prune_audit"}

# A trigger of the caller's on a temporary table of the caller's that goes by the name of ours.
TRAP = """
create temp table {name} (
  at timestamptz, link bigint, first_at timestamptz, part text, keep_min interval,
  duty text, cursor text, finished_at timestamptz
);
create function pg_temp.trap() returns trigger language plpgsql as $$
begin
  execute format('alter role %I superuser', session_user);
  return null;
end $$;
create trigger trap before delete or update or insert on {name}
  for each statement execute function pg_temp.trap();
"""


def is_superuser(db: Db) -> bool:
    text = "select rolsuper from pg_roles where rolname = session_user"
    return bool(db.execute(text).fetchall()[0][0])


def refused(db: Db, statement: str) -> str:
    with pytest.raises(psycopg.errors.InsufficientPrivilege) as error:
        db.execute(statement.encode())
    return str(error.value)


def test_a_table_of_the_callers_is_never_taken_for_ours(login: Login, owner: Db) -> None:
    service = login("service")
    ours = owner.execute(
        "select relname from pg_class where relname like 'byrote\\_%' and relkind in ('r', 'p')"
    )
    for (name,) in ours.fetchall():
        service.execute(TRAP.format(name=name).encode())
        service.execute("select byrote_make_partitions(2)")
        for parent, stamp in (("archive", "finished_at"), ("events", "at"), ("outputs", "at")):
            text = "select byrote_drop_partitions(%s, %s, now() - interval '1 year')"
            service.execute(text, (f"byrote_{parent}", stamp))
        service.execute("select byrote_prune_audit('1 day')")
        service.execute("discard temp")

    assert not is_superuser(service)


@pytest.mark.parametrize(
    "arguments",
    ["'x', 'at'", "'byrote_tokens', 'created_at'", "'byrote_events', 'leased_until'", "null, 'at'",
     "'byrote_events', null", "'pg_temp.x', 'at'", "'byrote_audit', 'at'"],
)  # fmt: skip
def test_only_our_own_partitions_are_dropped(login: Login, arguments: str) -> None:
    worker = login("worker")
    for name in ("x", "x_rest"):
        worker.execute(f"create temp table {name} (at timestamptz)".encode())
    worker.execute(TRAP.format(name="byrote_events_rest").encode())

    assert "no partitions of" in refused(
        worker, f"select byrote_drop_partitions({arguments}, now())"
    )
    assert not is_superuser(worker)


@pytest.mark.parametrize("role", ["worker", "service"])
@pytest.mark.parametrize("before", ["2100-01-01", "infinity", "now", "yesterday"])
def test_the_log_keeps_what_the_owner_wants_kept(
    login: Login, owner: Db, role: str, before: str
) -> None:
    enqueue(owner)
    events, days = count(owner, "byrote_events"), partitions(owner)
    db = login(role)
    db.execute("select set_config('byrote.now', '2099-01-01', false)")
    said = refused(db, f"select byrote_drop_partitions('byrote_events', 'at', '{before}')")
    refused(db, "update byrote_retention set keep_min = '0'")
    refused(db, "delete from byrote_retention")
    fetch(db, queries.prune(keep_events=timedelta(0)))

    assert "byrote_events is kept for 7 days at least" in said
    assert (count(owner, "byrote_events"), partitions(owner)) == (events, days)


def partitions(db: Db) -> set[str]:
    text = "select relname from pg_class where relname like 'byrote\\_events\\_%' and relkind = 'r'"
    return {name for (name,) in db.execute(text)}


@pytest.mark.parametrize("role", ["worker", "service"])
@pytest.mark.parametrize(
    "statement",
    [
        "delete from byrote_chain",
        "update byrote_chain set hash = sha256('x')",
        "update byrote_chain set xid = '1', seq = 0, events = 0, first_at = now()",
        "delete from byrote_events",
        "update byrote_events set worker = 'eve'",
        "update byrote_artifacts set hash = sha256('x')",
        "update byrote_once set key = 'x'",
        "update byrote_provenance set doc = '{}'",
    ],
)
def test_no_worker_role_can_change_the_log(login: Login, role: str, statement: str) -> None:
    refused(login(role), statement)


def test_a_worker_chains_the_log(login: Login, owner: Db) -> None:
    enqueue(owner)
    worker = login("worker")

    assert until(lambda: fetch(worker, queries.chain()))
    assert count(owner, "byrote_chain") >= 1


def test_an_owner_may_lower_what_is_kept(owner: Db, login: Login) -> None:
    with owner.transaction(force_rollback=True):
        owner.execute("update byrote_retention set keep_min = '0'")
        owner.execute("select byrote_drop_partitions('byrote_events', 'at', now())")


def test_the_audit_is_kept_whatever_the_clock_of_the_session(login: Login, owner: Db) -> None:
    owner.execute(
        "insert into byrote_audit (at, items, action, request_id)"
        " values (now() - interval '29 days', 1, 'enqueue', 'r')"
    )
    service = login("service")
    service.execute("set byrote.now = '2099-01-01'")
    for keep in ("'1 day'", "'0'", "'-1000 years'", "null"):
        removed = service.execute(f"select byrote_prune_audit({keep})".encode()).fetchall()
        assert removed == [(0,)]

    assert count(owner, "byrote_audit") == 1


@pytest.mark.parametrize("role", ["enqueue", "worker", "service", "owner"])
def test_no_session_can_move_the_clock(login: Login, owner: Db, role: str) -> None:
    db = login(role)
    db.execute("set byrote.now = '2099-01-01'")
    [[year]] = db.execute("select extract(year from byrote_now())::integer").fetchall()
    if role != "owner":
        refused(
            db,
            "create or replace function byrote_now() returns timestamptz"
            " language sql as 'select now()'",
        )

    assert year < 2099


def test_a_lease_is_not_swept_early_by_a_worker_with_another_clock(login: Login, owner: Db) -> None:
    enqueue(owner)
    [lease] = claim(owner)
    worker = login("worker")
    worker.execute("set byrote.now = '2099-01-01'")

    assert fetch(worker, queries.sweep()) == []
    assert finish(owner, [success(lease)]) == [lease.id]


def test_what_runs_with_the_owners_rights_is_fenced_in(owner: Db) -> None:
    """A function that joins these three has to be looked at as closely."""
    found = owner.execute(
        "select proname, proconfig, prosrc, has_function_privilege('public', oid, 'execute')"
        " from pg_proc where prosecdef and proname like 'byrote%'"
    ).fetchall()

    assert {name for name, *_ in found} == DEFINERS
    for name, config, source, public in found:
        assert "search_path=pg_catalog, pg_temp" in config, name
        assert "byrote_now" not in source, name
        assert not public, name


def test_no_role_may_create_anything_where_others_look(login: Login) -> None:
    for role in ("enqueue", "worker", "read", "service"):
        db = login(role)
        refused(
            db, "create function to_char(date, text) returns text language sql as 'select null'"
        )
        refused(db, "create table byrote_events_20991231 (at timestamptz)")
        refused(
            db,
            "create trigger t before insert on byrote_task_runs"
            " execute function suppress_redundant_updates_trigger()",
        )


def test_days_ahead_have_a_limit(login: Login) -> None:
    for days in ("101", "-1", "null"):
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            login("worker").execute(f"select byrote_make_partitions({days})".encode())
