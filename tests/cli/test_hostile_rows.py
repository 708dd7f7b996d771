# SPDX-License-Identifier: MIT
"""Whatever is in the database, no command writes a control character or a forged line for people.

The service and the SDK refuse most hostile names. A database role that may insert does not pass
them, so the texts are put into the rows themselves: every text of every table.
"""

from collections.abc import Iterator

import click
import pytest
from psycopg import errors, sql

from byrote.cli.root import root
from byrote.store.runners.sync import Store
from tests.cli.console import byrote
from tests.cli.test_hostile import EVIL, controls, runs, served
from tests.service.harness import make_token
from tests.support import Db

__all__ = ["runs", "served"]  # Fixtures.

CODED = {
    "status", "wait_reason", "kind", "measure", "timing", "zone", "catch_up", "role", "events",
    "checksum", "part", "duty", "cursor", "place", "location", "code_hash",
}  # fmt: skip
"""Columns whose words are ours: their values are checked or parsed."""
SPOILED = {
    "byrote_task_runs": {"queue_name", "task_path", "leased_by", "worker_ids"},
    "byrote_dead": {"queue_name", "task_path", "worker_ids"},
    "byrote_events": {"worker"},
    "byrote_workers": {"worker_id", "host", "version", "python", "queues", "tasks"},
    "byrote_tokens": {"name", "queues", "tasks"},
    "byrote_periodic_tasks": {"name", "queue_name", "task_path", "fault"},
    "byrote_steps": {"name"},
    "byrote_artifacts": {"name", "media_type"},
    "byrote_progress": {"message"},
    "byrote_queues": {"queue_name"},
    "byrote_unserved": {"queue_name", "task_path"},
}
"""Texts that must not escape this test by a constraint or a renamed column."""
TEXTS = """
select columns.table_name, columns.column_name, columns.data_type = 'ARRAY'
from information_schema.columns
join pg_class on pg_class.oid = to_regclass(format('%%I.%%I', table_schema, table_name))
where table_schema = 'public' and table_name like 'byrote%%' and udt_name in ('text', '_text')
  and relkind in ('r', 'p') and not relispartition
  and table_name not in ('byrote_schema', 'byrote_duties', 'byrote_retention')
  and column_name not like '%%_json' and column_name <> all(%s)
"""
ARTIFACT = """
insert into byrote_artifacts (result_id, name, hash, size, media_type, location, attempt, at)
select result_id, 'a', sha256('x'), 1, 't/p', 'postgresql', 1, now()
from unnest(%s::uuid[]) as result_id
"""
QUIET = {
    # They run until they are stopped, or measure: they print logs, or what they made themselves.
    "demo", "worker", "serve", "up", "torture", "bench",
    # They know no row of a user: the server, the schema, the settings.
    "pg destroy", "pg list", "pg logs", "pg psql", "pg status", "pg stop", "pg url",
    "roles", "migrate", "config show", "token create", "completion",
    # It shows an app, not the database.
    "tasks",
    # It writes a file, and is refused for these runs.
    "runs fetch",
}  # fmt: skip


@pytest.fixture
def spoiled(url: str, runs: list[str], store: Store, db: Db) -> dict[str, set[str]]:
    """Rows of every kind, with hostile text in front of every text that they have."""
    make_token(store)
    for words in (
        ("schedules", "add", "nightly", "hello", "--every", "1h"),
        ("enqueue", "never", "--queue", "aside", "--label", "a=b"),
        ("queues", "pause", "aside"),
    ):
        assert byrote(*words, url=url).code == 0, words
    db.execute(ARTIFACT, (runs,))
    db.execute("insert into byrote_unserved values (now(), now(), '1h', 1, 'aside', 'never')")
    db.execute("update byrote_periodic_tasks set fault = 'x'")
    return dict(spoil(db))


def spoil(db: Db) -> Iterator[tuple[str, set[str]]]:
    found: dict[str, set[str]] = {}
    for table, column, many in db.execute(TEXTS, (sorted(CODED),)).fetchall():
        name = sql.Identifier(column)
        evil = sql.SQL("array_prepend({}, {})" if many else "{} || {}").format(EVIL, name)
        change = sql.SQL("update {} set {} = {} where {} is not null").format(
            sql.Identifier(table), name, evil, name
        )
        try:
            if db.execute(change).rowcount:
                found.setdefault(table, set()).add(column)
        except (errors.IntegrityError, errors.DataError):
            continue  # The schema itself refuses it.
    yield from found.items()


def commands(group: click.Command, *path: str) -> Iterator[str]:
    """The name of every command."""
    if not isinstance(group, click.Group):
        yield " ".join(path)
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        yield from commands(found, *path, name)


def test_no_command_writes_what_could_be_a_control_sequence(
    spoiled: dict[str, set[str]], runs: list[str], url: str
) -> None:
    missed = {table: names - spoiled.get(table, set()) for table, names in SPOILED.items()}
    failed, done, under_way = runs
    schedule, queue = EVIL + "nightly", EVIL + "aside"
    views = {
        "runs list": [], "runs artifacts": [failed], "runs diff": [failed, done],
        "runs history": [failed], "runs logs": [done], "runs show": [failed],
        "runs signal": [under_way, EVIL], "replay": [done], "queues events": [queue, "few"],
        "queues list": [], "queues pause": [queue], "queues resume": [queue],
        "queues unserved": [queue, "2h"], "queues set": [queue, "--keep-done", "7d"],
        "queues purge": [queue, "--dry-run"], "schedules list": [], "schedules show": [schedule],
        "schedules pause": [schedule], "schedules resume": [schedule], "schedules run": [schedule],
        "schedules add": [EVIL, "t", "--every", "1h"], "dead list": [], "dead show": [failed],
        "workers list": [], "top": ["--once"], "token list": [], "token rotate": [EVIL],
        "token revoke": [EVIL], "events": ["--last", "1000"], "verify": [], "doctor": [],
        "enqueue": [EVIL], "runs cancel": [under_way], "runs retry": [failed],
        "dead requeue": [failed], "dead delete": [failed], "prune": [],
        "schedules remove": [schedule],
    }  # fmt: skip
    shown = {view: byrote(*view.split(), *more, url=url) for view, more in views.items()}

    assert {table: names for table, names in missed.items() if names} == {}
    assert set(commands(root)) == set(views) | QUIET
    assert {view for view, said in shown.items() if controls(said.out + said.err)} == set()
    # What a task has printed is shown as it is, line by line.
    forged = {view for view, said in shown.items() if "\nLINE" in said.out + said.err}
    assert forged == {"runs logs"}
    silent = {view for view, said in shown.items() if "pwned" not in said.out + said.err}
    # These name runs by their ids alone.
    ids = {"dead delete", "dead requeue", "runs cancel", "runs retry"}
    assert silent <= {"replay", "doctor", "prune", "queues purge"} | ids


@pytest.mark.usefixtures("spoiled")
def test_no_page_of_a_run_has_what_could_be_a_control_sequence(runs: list[str], url: str) -> None:
    for run in runs:
        for view in ("show", "history", "artifacts"):
            said = byrote("runs", view, run, url=url)
            assert controls(said.out + said.err) == set(), view
            assert "\nLINE" not in said.out, view
            assert "pwned" in said.out, view
    page = byrote("runs", "show", runs[0], url=url).out
    assert "Byrote \\x1b" in page.partition("provenance")[2]


@pytest.mark.usefixtures("spoiled")
@pytest.mark.parametrize(
    "command",
    ["queues pause nope", "queues events nope few", "queues unserved nope 2h",
     "queues purge nope --dry-run", "queues set nope", "schedules show nope"],
)  # fmt: skip
def test_the_known_names_in_an_error_message_are_escaped(url: str, command: str) -> None:
    shown = byrote(*command.split(), url=url)

    assert shown.code == 4
    assert "pwned" in shown.err
    assert controls(shown.err) == set()
    assert "\nLINE" not in shown.err
