# SPDX-License-Identifier: MIT
import socket
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from byrote import App, LargePayload, Retry, Status
from byrote.assembly.clock import monotonic
from byrote.core.errors import (
    BadArguments,
    BadOption,
    DatabaseUnreachable,
    RunNotFound,
    UnknownQueue,
)
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import Store
from tests.support import Db, count, run_of
from tests.tasks import api


def test_a_task_can_still_be_called(app: App) -> None:
    @app.task
    def double(n: int) -> int:
        """Twice."""
        return 2 * n

    assert double(4) == 8
    assert (double.name, double.version, double.__doc__) == (
        "tests.api.test_app.double",
        1,
        "Twice.",
    )


def test_a_run_carries_the_tasks_policy(tasks: App, db: Db) -> None:
    run = run_of(db, api.about.enqueue("x").id)

    assert (run.task, run.version, run.queue) == ("tests.tasks.api.about", 2, "mail")
    assert (run.timeout, run.max_attempts) == (timedelta(seconds=30), 3)
    assert (run.args, run.kwargs) == (["x"], {})


def test_using_delivers_otherwise_and_leaves_the_task_as_it_was(tasks: App, db: Db) -> None:
    other = api.about.using(priority=10, run_after="10m", labels={"order": "42"}, queue="slow")
    late, plain = run_of(db, other.enqueue("x").id), run_of(db, api.about.enqueue("x").id)

    assert (late.status, late.priority, late.queue) == (Status.WAITING, 10, "slow")
    assert late.labels == {"order": "42"}
    assert (plain.status, plain.priority, plain.queue) == (Status.READY, 0, "mail")
    assert late.spec_hash == plain.spec_hash
    assert late.timeout == plain.timeout


def test_using_checks_what_it_is_given(tasks: App) -> None:
    with pytest.raises(BadOption, match="priority"):
        api.add.using(priority=500)
    with pytest.raises(BadOption, match="colour"):
        api.add.using(colour="red")


def test_a_spec_describes_a_call_without_sending_it(tasks: App, db: Db) -> None:
    spec = api.add.spec(1, b=2)

    assert count(db, "byrote_runs") == 0
    assert spec.text == ('{"task":"tests.tasks.api.add","version":1,"args":[1],"kwargs":{"b":2}}')
    assert run_of(db, tasks.enqueue(spec).id).spec_json == spec.text


def test_arguments_that_do_not_fit_are_refused_at_the_door(tasks: App, db: Db) -> None:
    with pytest.raises(BadArguments, match="add"):
        api.add.enqueue(1, 2, 3)  # type: ignore[call-arg]
    assert count(db, "byrote_runs") == 0


def test_an_enqueue_joins_the_transaction_of_the_callers_connection(
    tasks: App, db: Db, address: DatabaseAddress
) -> None:
    with address.open("caller") as caller:
        with caller.transaction() as doomed:
            api.add.using(connection=caller).enqueue(1)
            tasks.enqueue_many([api.add.spec(n) for n in range(3)], connection=caller)
            raise psycopg.Rollback(doomed)
        with caller.transaction():
            tasks.enqueue(api.add.spec(1), connection=caller)
            assert count(db, "byrote_runs") == 0

    assert count(db, "byrote_runs") == 1


def test_a_callers_connection_may_give_its_rows_in_any_form(
    tasks: App, db: Db, url: str, run_async: Any
) -> None:
    async def send() -> None:
        connecting = psycopg.AsyncConnection.connect(url, row_factory=dict_row)
        async with await connecting as caller:
            await api.add.using(connection=caller).aenqueue(1)
            await api.report.using(connection=caller).aenqueue("11")

    run_async(send)
    with psycopg.connect(url, row_factory=dict_row) as caller:
        api.add.using(connection=caller).enqueue(1)
        assert not api.report.using(connection=caller).enqueue("11").created
        tasks.enqueue_many([api.add.spec(1), api.report.spec("12")], connection=caller)

    assert count(db, "byrote_runs") == 5


def test_an_async_enqueue_joins_the_transaction_of_the_callers_connection(
    tasks: App, db: Db, url: str, run_async: Any
) -> None:
    async def send() -> None:
        async with (
            await psycopg.AsyncConnection.connect(url, autocommit=True) as caller,
            caller.transaction() as doomed,
        ):
            await api.add.using(connection=caller).aenqueue(1)
            await tasks.aenqueue_many([api.add.spec(2)], connection=caller)
            raise psycopg.Rollback(doomed)
        await api.add.aenqueue(5)
        await tasks.aenqueue_many(api.add.spec(n) for n in range(6, 9))

    run_async(send)
    text = "select spec_json::jsonb #> '{args,0}' from byrote_runs order by 1"
    assert [n for (n,) in db.execute(text)] == [5, 6, 7, 8]


def test_a_hundred_thousand_specs_are_accepted_in_one_call(tasks: App, db: Db) -> None:
    began = monotonic()
    handles = tasks.enqueue_many(api.add.spec(n) for n in range(100_000))

    assert monotonic() - began < 60
    assert len({handle.id for handle in handles}) == 100_000
    assert count(db, "byrote_task_runs") == 100_000
    assert run_of(db, handles[77_777].id).args == [77_777]


def test_many_specs_are_accepted_all_or_none(tasks: App, db: Db) -> None:
    def specs() -> Any:
        yield from (api.add.spec(n) for n in range(2_500))
        yield api.add.spec(object())  # type: ignore[arg-type]

    with pytest.raises(ValueError, match="plain values"):
        tasks.enqueue_many(specs())
    assert count(db, "byrote_runs") == 0


def test_no_specs_enqueue_no_runs(tasks: App, db: Db) -> None:
    assert tasks.enqueue_many([]) == []
    assert count(db, "byrote_events") == 0


def test_a_broken_connection_is_noticed_and_the_call_succeeds(tasks: App, db: Db) -> None:
    api.add.enqueue(1)
    for send in (
        lambda: api.add.enqueue(2),
        lambda: tasks.enqueue_many([api.add.spec(3), api.add.spec(4)]),
    ):
        db.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
            " where datname = current_database() and application_name = 'byrote client'"
        )
        send()

    assert count(db, "byrote_runs") == 4


def test_an_async_call_survives_a_broken_connection_too(tasks: App, db: Db, run_async: Any) -> None:
    async def send() -> None:
        await api.add.aenqueue(1)
        for call in (
            lambda: api.add.aenqueue(2),
            lambda: tasks.aenqueue_many([api.add.spec(3), api.add.spec(4)]),
        ):
            db.execute(
                "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
                " where datname = current_database() and application_name = 'byrote client'"
            )
            await call()

    run_async(send)
    assert count(db, "byrote_runs") == 4


def test_a_large_payload_is_accepted_with_a_warning(tasks: App, db: Db) -> None:
    with pytest.warns(LargePayload, match="reference"):
        api.echo.enqueue("x" * 300_000)
    assert count(db, "byrote_runs") == 1


def test_a_payload_over_the_limit_is_refused(tasks: App, db: Db) -> None:
    with pytest.raises(ValueError, match="the limit is 4,194,304"):
        api.echo.enqueue("x" * 5_000_000)
    assert count(db, "byrote_runs") == 0


def test_an_app_that_declares_its_queues_refuses_others(url: str, db: Db) -> None:
    app = App(url, queues=["mail", "default"])

    @app.task(queue="mail")
    def send() -> None: ...

    with pytest.raises(UnknownQueue, match=r"'sms'.*default, mail"):
        app.task(queue="sms", name="other")(lambda: None)
    with pytest.raises(UnknownQueue):
        send.using(queue="sms").enqueue()
    with pytest.raises(UnknownQueue):
        app.enqueue_many([send.spec(), send.using(queue="sms").spec()])
    assert count(db, "byrote_runs") == 0
    send.enqueue()
    app.close()
    assert count(db, "byrote_runs") == 1


def test_an_unknown_run_is_reported_as_unknown(app: App) -> None:
    handle = app.run("01a1e0f7-8a29-7eea-8c71-1a986ee4dea1")
    for ask in (handle.refresh, handle.result, lambda: handle.status):
        with pytest.raises(RunNotFound, match="01a1e0f7"):
            ask()


def test_a_database_that_is_not_there_is_named_without_its_password() -> None:
    app = App("postgresql://me:secret@127.0.0.1:1/none", enqueue_patience="200ms")
    with pytest.raises(DatabaseUnreachable, match=r"127\.0\.0\.1:1/none") as refused:
        app.enqueue(api.add.spec(1))

    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg", "psycopg2", "psycopg_async"])
def test_a_url_of_sqlalchemy_is_understood(driver: str) -> None:
    address = App(f"postgresql+{driver}://me:hush@db:5433/shop").address
    plain = App("postgresql://me:hush@db:5433/shop").address

    assert (address.redacted, address.conninfo("x")) == ("db:5433/shop", plain.conninfo("x"))


def test_how_long_an_enqueue_waits_is_a_setting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "byrote.toml").write_text('enqueue_patience = "3s"')
    monkeypatch.chdir(tmp_path)
    by_file = App().settings.enqueue_patience
    monkeypatch.setenv("BYROTE_ENQUEUE_PATIENCE", "2s")
    by_variable = App().settings.enqueue_patience

    assert (by_file, by_variable) == (timedelta(seconds=3), timedelta(seconds=2))
    assert App(enqueue_patience=1).settings.enqueue_patience == timedelta(seconds=1)
    with pytest.raises(ValueError, match="duration"):
        App(enqueue_patience="soon")


def test_patience_counts_the_time_of_the_tries() -> None:
    """A server that accepts connections and never answers costs a try, not only a pause."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        with App(f"postgresql://me@{place}/none", enqueue_patience="1s") as app:
            began = monotonic()
            with pytest.raises(DatabaseUnreachable):
                app.enqueue(api.add.spec(1))

    assert monotonic() - began < 10


def test_patience_ends_also_without_pauses() -> None:
    address = DatabaseAddress("postgresql://me@127.0.0.1:1/none")
    store = Store(address, jitter=lambda: 0.0, patience_s=0.1)

    with pytest.raises(DatabaseUnreachable):
        store.all(queries.workers())


@pytest.mark.parametrize("url", ["mysql://host/db", "not a url", "postgresql://host:port:x/db"])
def test_a_url_that_is_none_is_refused_at_the_door(url: str) -> None:
    with pytest.raises(BadOption, match="URL"):
        App(url).enqueue(api.add.spec(1))


def test_a_policy_given_to_a_task_is_checked_when_it_is_defined(app: App) -> None:
    with pytest.raises(BadOption):
        app.task(priority=1_000, name="x")(lambda: None)
    with pytest.raises(BadOption):
        app.task(retry=Retry(attempts=0))


def test_an_app_defines_a_schedule_once() -> None:
    app = App()

    @app.task
    def tell(word: str) -> str:
        return word

    first = app.schedule("s", tell.spec("a"), every="1m")
    assert app.schedule("s", tell.spec("a"), every="1m") == first
    assert app.schedules == [first]
    with pytest.raises(BadOption, match="defined twice"):
        app.schedule("s", tell.spec("a"), every="2m")
    with pytest.raises(BadOption, match="cron"):
        app.schedule("t", tell.spec("a"), every="2m", cron="0 3 * * *")


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"retry": 5}, r"retry is a Retry, such as Retry\(attempts=5\), not 5"),
        ({"retry": 0}, "retry is a Retry"),
        ({"queu": "mail"}, "no option 'queu'; did you mean 'queue'"),
        ({"priority": "high"}, "priority is a whole number"),
        ({"colour": "red"}, "no option 'colour'; the options are .*priority"),
    ],
)
def test_wrong_options_fail_where_they_are_written(
    app: App, options: dict[str, Any], advice: str
) -> None:
    with pytest.raises(BadOption, match=advice):
        app.task(**options)(len)
    with pytest.raises(BadOption, match=advice):
        api.add.using(**options)
