# SPDX-License-Identifier: MIT
"""The checks of `byrote doctor`: each examines one thing and advises on problems."""

import platform
import shutil
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import msgspec
import psycopg

from byrote.assembly.settings import Resolved, Settings
from byrote.assembly.variables import unknown_variable, unknown_variables
from byrote.cli.commands.checks.config import shown_settings
from byrote.cli.main import installed_version
from byrote.cli.output.tables import worker_command
from byrote.cli.support.server_probe import ServerHealth, receives
from byrote.core.duration import spoken
from byrote.core.errors import SchemaMismatch
from byrote.core.schedule.schedule import LATE
from byrote.core.unserved import end_of, like
from byrote.embedded.binaries import MAJOR_MIN, tried
from byrote.embedded.errors import WAYS_OUT
from byrote.store import migrate, queries, rights
from byrote.store.connect import DatabaseAddress
from byrote.store.outlines import outline_of
from byrote.store.query import Query
from byrote.store.runners.sync import fetch

type CheckState = Literal["ok", "warn", "fail"]

DISK_MIN = 1 << 30
TRANSACTION_MAX_S = 600.0
CLOCKS_APART_MAX_S = 5.0
READY_MAX_S = 300.0


class Check(msgspec.Struct, frozen=True):
    """The subject of a check, its state, and advice."""

    name: str
    state: CheckState
    message: str
    advice: str = ""


def judged(name: str, message: str, *, good: bool, advice: str, bad: CheckState = "warn") -> Check:
    """A check that is either fine, or bad with advice."""
    return Check(name, "ok", message) if good else Check(name, bad, message, advice)


def of_machine(resolved: Resolved) -> Iterator[Check]:
    """Checks that need no database."""
    yield Check("python", "ok", f"{platform.python_version()} on {platform.system()}")
    yield Check("byrote", "ok", installed_version())
    shown = shown_settings(resolved)
    changed = {k: origin for k, origin in resolved.origins.items() if origin != "default"}
    words = ", ".join(f"{name} = {shown[name]} ({origin})" for name, origin in changed.items())
    yield Check("settings", "ok", words or "all at their defaults")


def of_variables(environ: Mapping[str, str]) -> Check:
    """Whether every variable that looks like a setting is one; all other commands refuse to run."""
    settings = Settings.__struct_fields__
    strange = unknown_variables(environ, settings)
    if not strange:
        return Check("variables", "ok", "all BYROTE_… are known")
    advice = str(unknown_variable(strange[0], settings))
    return Check("variables", "fail", f"unknown: {', '.join(strange)}", advice)


def of_provider(environ: Mapping[str, str], *, needed: bool) -> Check:
    """The PostgreSQL that the embedded server would run on, and why."""
    answers = tried(environ)
    chosen = answers[-1]
    if chosen.binaries is None:
        message = "; ".join(f"{answer.provider}: {answer.why}" for answer in answers)
        return Check("embedded", "fail" if needed else "ok", message, WAYS_OUT if needed else "")
    passed = "; ".join(f"{answer.provider}: {answer.why}" for answer in answers[:-1])
    return Check(
        "embedded", "ok", f"{chosen.provider}, {chosen.why}" + f" ({passed})" * bool(passed)
    )


def of_disk(home: Path) -> Check:
    """Whether the embedded server has room to write."""
    there = next(folder for folder in (home, *home.parents) if folder.exists())
    free = shutil.disk_usage(there).free
    message = f"{free / (1 << 30):.1f} GiB free for {home}"
    return judged(
        "disk", message, good=free >= DISK_MIN, advice="Make room, or set BYROTE_PG_HOME."
    )


def of_server(health: ServerHealth, *, before: datetime, after: datetime) -> Iterator[Check]:
    """Checks of the server's settings and state."""
    yield judged(
        "version",
        f"PostgreSQL {health.release}",
        good=health.version >= MAJOR_MIN * 10_000,
        advice=f"Byrote needs PostgreSQL {MAJOR_MIN} or newer.",
        bad="fail",
    )
    yield judged(
        "primary",
        "a standby, read only" if health.standby else "the primary",
        good=not health.standby,
        advice="Point the URL at the primary, e.g. with target_session_attrs=read-write.",
        bad="fail",
    )
    yield _durability(health)
    yield judged(
        "transactions",
        f"the oldest is {health.oldest_transaction_s:.0f} s old",
        good=health.oldest_transaction_s <= TRANSACTION_MAX_S,
        advice="Old transactions keep vacuum from cleaning the queue: find them in "
        "pg_stat_activity by xact_start and end them.",
    )
    apart = max((before - health.now).total_seconds(), (health.now - after).total_seconds(), 0.0)
    yield judged(
        "clocks",
        f"{apart:.3f} s apart",
        good=apart <= CLOCKS_APART_MAX_S,
        advice="Only the database's clock decides anything, but logs will not line up: use NTP.",
    )


def _durability(health: ServerHealth) -> Check:
    names = ("fsync", "synchronous_commit", "full_page_writes")
    settings = {name: getattr(health, name) for name in names}
    careless = [f"{name}={value}" for name, value in settings.items() if value == "off"]
    return judged(
        "durability",
        ", ".join(f"{name}={value}" for name, value in settings.items()),
        good=not careless,
        advice=f"With {', '.join(careless)} a crash of the server may lose accepted runs.",
    )


def of_schema(connection: psycopg.Connection[Any], schema: str | None) -> Check:
    """Whether the schema is the one this version needs."""
    try:
        migrate.check(connection, schema)
    except SchemaMismatch as error:
        return Check("schema", "fail", "not the one this version needs", str(error))
    except psycopg.errors.InsufficientPrivilege as error:
        login = connection.info.user
        advice = (
            "As the owner of the tables, run `byrote roles --sql`, then "
            f"`grant byrote_worker to {login}`, or another role."
        )
        return Check(
            "schema", "fail", f"{login} has no rights: {error.diag.message_primary}", advice
        )
    return Check("schema", "ok", "up to date")


def of_listen(address: DatabaseAddress) -> Check:
    """Whether workers are woken by notifications, or have to poll."""
    if address.pooled:
        return Check("listen", "ok", "not used, as `pooled` is set; workers poll")
    with address.open("doctor") as listener, address.open("doctor") as notifier:
        arrived = receives(listener, notifier)
    return judged(
        "listen",
        "notifications arrive" if arrived else "notifications do not arrive",
        good=arrived,
        advice="A transaction pooler is in between: set pooled = true, and workers will poll.",
    )


def of_rights(connection: psycopg.Connection[Any], schema: str | None) -> Iterator[Check]:
    """What this login may do, and which role would let it do the rest."""
    [found] = fetch(connection, rights.rights(), schema)
    refused = {
        deed: list(rights.refusals(connection, deed.statements, schema)) for deed in rights.DEEDS
    }
    can = [deed.name for deed, reasons in refused.items() if not reasons]
    cannot = [f"{deed.name} (needs {deed.role})" for deed, reasons in refused.items() if reasons]
    message = f"{found.login} can {', '.join(can)}" if can else f"{found.login} can do nothing"
    message += f"; cannot {', '.join(cannot)}" if cannot else ""
    stale = [(deed, reasons) for deed, reasons in refused.items() if deed.role in found.roles]
    broken = [f"{deed.role}: {reasons[0][1]}" for deed, reasons in stale if reasons]
    if broken:
        advice = (
            "As the owner of the tables, run `byrote roles --sql` again: it is older than they are."
        )
        yield Check("rights", "fail", f"{message}; it has {'; '.join(broken)}", advice)
    else:
        advice = (
            f"As the owner of the tables, `grant byrote_worker to {found.login}` or another role."
        )
        yield judged("rights", message, good=bool(can), advice=advice, bad="fail")
    if found.open_schema:
        advice = "Revoke it, as `byrote roles --sql` does: others might call them by accident."
        yield Check("schema rights", "warn", "every user may create functions there", advice)
    if found.clock_is_set:
        advice = "Only a database for tests should have it; `byrote.testing` made it so."
        yield Check("settable clock", "warn", "sessions can set byrote_now()", advice)


def visible[Row](
    connection: psycopg.Connection[Any], query: Query[Row], schema: str | None
) -> list[Row]:
    """The rows of a query, in outline where this login may not see values."""
    try:
        return fetch(connection, query, schema)
    except psycopg.errors.InsufficientPrivilege:
        outline = outline_of(query)
        if outline is None:
            raise
        return fetch(connection, outline, schema)


def of_work(connection: psycopg.Connection[Any], schema: str | None) -> Iterator[Check]:
    """Workers, queues and schedules, as far as this login may read them."""
    try:
        yield from of_queue(connection, schema)
        yield of_schedules(connection, schema)
    except psycopg.errors.InsufficientPrivilege:
        yield Check("workers", "ok", "not visible to this login, like queues and schedules")


def of_queue(connection: psycopg.Connection[Any], schema: str | None) -> Iterator[Check]:
    """Workers, queues and dead letters."""
    workers = fetch(connection, queries.workers(), schema)
    queues = fetch(connection, queries.queues(), schema)
    alive = sum(worker.alive for worker in workers)
    yield judged(
        "workers",
        f"{alive} alive, {len(workers) - alive} gone silent",
        good=alive > 0,
        advice=f"No worker is running; start one with `{worker_command()}`.",
    )
    served = {name for worker in workers if worker.alive for name in worker.queues}
    waiting = {queue.queue for queue in queues if queue.ready and queue.paused_at is None}
    alone = sorted(waiting - served)
    yield judged(
        "served queues",
        f"no worker serves {', '.join(alone)}" if alone else "all with ready runs",
        good=not alone,
        advice=f"Start `{worker_command()} --queues {','.join(alone)}`, or add them to one.",
    )
    paused = sorted(queue.queue for queue in queues if queue.ready and queue.paused_at is not None)
    yield judged(
        "paused queues",
        f"ready runs wait in {', '.join(paused)}" if paused else "none with ready runs",
        good=not paused,
        advice=f"`byrote queues resume {paused[0] if paused else 'NAME'}` lets workers claim them.",
    )
    yield _of_tasks(connection, schema)
    dead = sum(queue.dead for queue in queues)
    yield judged(
        "dead letters",
        f"{dead:,}",
        good=dead == 0,
        advice="See `byrote runs list --status failed`; `byrote runs retry` brings them back.",
    )
    oldest = max((queue.oldest_ready_s or 0.0 for queue in queues), default=0.0)
    yield judged(
        "oldest ready",
        spoken(timedelta(seconds=round(oldest))),
        good=oldest <= READY_MAX_S,
        advice="Runs wait long for a worker: start more, or check that one knows their task.",
    )


def _of_tasks(connection: psycopg.Connection[Any], schema: str | None) -> Check:
    """Whether live workers know the tasks of what is ready."""
    found = fetch(connection, queries.unserved_tasks(), schema)
    unknown = "; ".join(f"{one.key} in {one.queue}{like(one.key, one.known)}" for one in found[:5])
    more = f"; and {len(found) - 5} more" if len(found) > 5 else ""
    first = found[0].unserved_for if found else None
    return judged(
        "known tasks",
        f"no live worker knows {unknown}{more}" if found else "all that were noted",
        good=not found,
        advice=f"Start a worker that defines the task by that name and version. {end_of(first)}",
    )


def of_schedules(connection: psycopg.Connection[Any], schema: str | None) -> Check:
    """Whether schedules are on time."""
    found = visible(connection, queries.schedules(), schema)
    faulty = [one.schedule.name for one in found if one.state == "fault"]
    active = [one for one in found if one.state == "on"]
    late = [one.schedule.name for one in active if one.next_at and one.now - one.next_at > LATE]
    message = f"{len(active)} on, {len(found) - len(active)} paused or over"
    if faulty:
        advice = f"`byrote schedules show {faulty[0]}` shows the fault."
        return Check("schedules", "warn", f"{message}; with a fault: {', '.join(faulty)}", advice)
    return judged(
        "schedules",
        f"{message}; overdue: {', '.join(late)}" if late else message,
        good=not late,
        advice="No worker runs the schedules: start one, of any app.",
    )
