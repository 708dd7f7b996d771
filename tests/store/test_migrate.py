# SPDX-License-Identifier: MIT
import multiprocessing
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import byrote.store
from byrote.assembly.identity import jitter
from byrote.core.errors import DatabaseUnreachable, SchemaMismatch
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.migrate import check, migrate, migrations, pending
from byrote.store.query import statement
from byrote.store.runners.sync import fetch
from tests.support import Db, claim, enqueue, finish, success, until

STATEMENTS = sorted(
    path.stem for path in (Path(byrote.store.__file__).parent / "sql").rglob("*.sql")
)
NAMES = [migration.name for migration in migrations()]


def migrate_in_a_process(url: str, answers: "multiprocessing.Queue[list[str]]") -> None:
    answers.put([migration.name for migration in migrate(DatabaseAddress(url), jitter=jitter)])


def test_the_first_run_applies_everything_and_the_second_nothing(bare: DatabaseAddress) -> None:
    assert [migration.name for migration in migrate(bare, jitter=jitter)] == NAMES
    assert list(migrate(bare, jitter=jitter)) == []
    with bare.open("test") as db:
        check(db)
        [run_id] = enqueue(db)
        assert finish(db, [success(claim(db)[0])]) == [run_id]


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_hold_all_text_is_refused(server_url: str, encoding: str) -> None:
    name = f"byrote_{encoding.lower()}_{os.getpid()}"
    how = f"encoding '{encoding}' locale 'C' template template0"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"create database {name} {how}")  # type: ignore[call-overload]
        try:
            with pytest.raises(SchemaMismatch, match=f"encoding {encoding}; Byrote needs UTF8"):
                migrate(DatabaseAddress(make_conninfo(server_url, dbname=name)), jitter=jitter)
        finally:
            admin.execute(f"drop database {name}")  # type: ignore[call-overload]


def test_processes_that_migrate_at_once_apply_each_migration_once(bare: DatabaseAddress) -> None:
    spawn = multiprocessing.get_context("spawn")
    answers: multiprocessing.Queue[list[str]] = spawn.Queue()
    url = bare.conninfo("test")
    processes = [spawn.Process(target=migrate_in_a_process, args=(url, answers)) for _ in range(3)]
    for process in processes:
        process.start()
    applied = [answers.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(timeout=30)

    assert sorted(name for names in applied for name in names) == NAMES
    with bare.open("test") as db:
        check(db)


def test_pending_names_what_is_missing_and_check_names_the_command(bare: DatabaseAddress) -> None:
    with bare.open("test") as db:
        assert [migration.name for migration in pending(db)] == NAMES
        with pytest.raises(SchemaMismatch, match=r"has no Byrote tables.*byrote migrate"):
            check(db)


def test_a_database_ahead_of_us_is_refused(own: Db, bare: DatabaseAddress) -> None:
    own.execute("insert into byrote_schema (version, name, checksum) values (9999, 'later', '')")

    with pytest.raises(SchemaMismatch, match="Upgrade Byrote"):
        check(own)
    with pytest.raises(SchemaMismatch, match="9999"):
        migrate(bare, jitter=jitter)


def test_a_schema_built_from_other_files_is_refused(own: Db, bare: DatabaseAddress) -> None:
    own.execute("update byrote_schema set checksum = 'edited' where version = 1")

    expected = f"development version.*{NAMES[0]} differs.*ecreate it"
    with pytest.raises(SchemaMismatch, match=expected):
        check(own)
    with pytest.raises(SchemaMismatch, match=expected):
        migrate(bare, jitter=jitter)


@pytest.mark.parametrize("applied", [1, 12, 21])
def test_a_database_of_a_development_version_is_refused_and_left_as_it_is(
    bare: DatabaseAddress, applied: int
) -> None:
    """Before the first release the schema was 21 files, the first of them 0001_runs."""
    with bare.open("test") as db:
        db.execute("create table byrote_schema (version int, name text, checksum text)")
        db.execute(
            "insert into byrote_schema select n, 'part', 'x' from generate_series(2, %s) as n",
            (applied,),
        )
        db.execute("insert into byrote_schema values (1, '0001_runs', 'x')")
        expected = f"development version.*0001_runs where this version has {NAMES[0]}.*ecreate it"
        with pytest.raises(SchemaMismatch, match=expected):
            check(db)
        with pytest.raises(SchemaMismatch, match=expected):
            migrate(bare, jitter=jitter)

        assert db.execute("select count(*) from byrote_schema").fetchone() == (applied,)
        assert db.execute("select to_regclass('byrote_task_runs')").fetchone() == (None,)


def test_a_migration_that_fails_leaves_nothing_behind(bare: DatabaseAddress) -> None:
    with bare.open("test") as db:
        db.execute("create view byrote_runs as select 1 as mine")
        with pytest.raises(psycopg.errors.DuplicateTable):
            migrate(bare, jitter=jitter)
        text = "select to_regclass('byrote_task_runs'), to_regclass('byrote_schema')"
        assert db.execute(text).fetchall() == [(None, None)]
        db.execute("drop view byrote_runs")

    assert len(migrate(bare, jitter=jitter)) == len(NAMES)


def test_a_migration_behind_a_lock_stops_waiting_and_tries_again(bare: DatabaseAddress) -> None:
    """It never makes others queue behind itself: it waits outside the line."""
    said: list[str] = []
    with bare.open("holder") as holder, ThreadPoolExecutor(1) as pool:
        with holder.transaction():
            holder.execute("select pg_advisory_xact_lock(hashtext('byrote.migrate'))")
            done = pool.submit(migrate, bare, jitter=jitter, report=said.append)
            until(lambda: said)
            assert "55P03" in said[0]
            assert not done.done()
        assert [migration.name for migration in done.result()] == NAMES


def test_a_migrated_database_can_be_migrated_under_load(own: Db, bare: DatabaseAddress) -> None:
    with bare.open("busy") as busy, busy.transaction():
        enqueue(busy)
        claim(busy)

        assert list(migrate(bare, jitter=jitter)) == []


def test_a_schema_lives_where_the_search_path_points(bare: DatabaseAddress) -> None:
    with bare.open("test") as db:
        db.execute("create schema tenant")
    there = DatabaseAddress(f"{bare.conninfo('test')} options='-c search_path=tenant'")
    migrate(there, jitter=jitter)
    with there.open("test") as db:
        enqueue(db)
        [[schema]] = db.execute(
            "select relnamespace::regnamespace::text from pg_class where relname = 'byrote_dead'"
        ).fetchall()

    assert schema == "tenant"


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(DatabaseUnreachable, match=r"127\.0\.0\.1:1/none"):
        migrate(DatabaseAddress("postgresql://127.0.0.1:1/none"), jitter=jitter)


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_statement_prepares_on_the_migrated_schema(db: Db, name: str) -> None:
    text = statement(name).decode()
    for n, parameter in enumerate(sorted(_parameters(text)), start=1):
        text = text.replace(f"%({parameter})s", f"${n}")
    types = ", ".join(["unknown"] * len(_parameters(statement(name).decode())))
    prepared = f"prepare trial{f' ({types})' if types else ''} as {text}"

    db.execute(prepared.encode(), prepare=False)
    db.execute("deallocate trial")


def _parameters(text: str) -> set[str]:
    return set(re.findall(r"%\((\w+)\)s", text))


def test_the_first_migration_in_the_ledger_has_the_checksum_of_its_file(db: Db) -> None:
    assert fetch(db, queries.schema())[0].checksum == migrations()[0].checksum


def test_the_first_page_of_the_schema_names_everything_in_it(own: Db) -> None:
    found = own.execute(
        """
        select relname from pg_class
        where relnamespace = current_schema()::regnamespace
          and relkind in ('r', 'p', 'v', 'S', 'i', 'I')
          and not relispartition
          and relname !~ '_(pkey|key|provenance_id_seq|audit_id_seq)$'
        union
        select proname from pg_proc where pronamespace = current_schema()::regnamespace
        """
    )
    page = migrations()[0].text.decode().partition("\n\n")[0]

    assert all(line.startswith("--") for line in page.splitlines())
    assert {name for (name,) in found} - set(re.findall(r"byrote_\w+", page)) == set()
