# SPDX-License-Identifier: MIT
"""Which database role each statement needs, and what a login may do.

`LEAST` names, for every file of `sql/`, the lowest role that may run it; a role may also run what
the roles before it may. `READ` lists what `byrote_read`, a separate role, may run. `roles.sql`
grants the rights; PostgreSQL checks them when a statement is explained, so a login learns what it
lacks without executing anything.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import psycopg

from byrote.core.errors import RightMissing
from byrote.store.query import Query, explanation, numbered


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ENQUEUE: Final = _names("""
announced_tasks channels count_copies databases end_sessions enqueue enqueue_one enqueue_unique
in_search_path is_accepted key_holders now ready_queues rights schema schemas session set_timeout
uptime verify_catalog writable
""")

WORKER: Final = _names("""
archive archive_around artifact artifact_prefix artifacts begin_stats blob cancel chain claim
claimed count_matching count_stats counters cursor dead dead_outline delete_dead delete_mark
delete_orphans delete_schedule depths deregister duties ended_runs enqueue_memo enqueue_verification
fail_unserved filter_names finish finished_leases heartbeat held_leases idle is_logged last_event
latest_by_hash leased_runs live_output locked log_after matching note_unserved once once_keys
originals outcome outlines outputs partition pause_schedule progress progressed progressing
progressing_outline promote provenances prunable prune prune_artifacts prune_blobs prune_memos
prune_stats queues record_steps recount referenced register register_provenance renew replay replays
resume_schedule retry run run_access run_history run_history_outline runs runs_at save_cursor
save_schedule schedules schedules_outline shadow signal stats step steps steps_outline succeed sweep
task_depths tick unfinished unknown_tasks unserved_tasks verify_chain verify_events verify_head
verify_malformed verify_recorded verify_runs verify_scene verify_stored verify_written watch watched
why_waiting worker_owner workers workers_at
""")

SERVICE: Final = _names("""
audit pause prune_service resume set_events set_retention set_unserved store_reply stored_reply
token tokens use_tokens
""")

OWNER: Final = _names("audits create_token delete_runs extend_token revoke_token rotate_token")

READ: Final = _names("""
announced_tasks artifacts counters cursor databases dead_outline depths ended_runs filter_names
is_accepted last_event latest_by_hash log_after now originals outlines progressed
progressing_outline provenances prunable queues replays rights run_access run_history_outline
schedules_outline schema schemas session set_timeout stats steps_outline task_depths unserved_tasks
verify_catalog verify_scene why_waiting workers workers_at writable
""")

LEAST: Final[Mapping[str, str]] = {
    name: role
    for role, names in (
        ("byrote_enqueue", ENQUEUE),
        ("byrote_worker", WORKER),
        ("byrote_service", SERVICE),
        ("byrote_owner", OWNER),
    )
    for name in names
}

TO_WORK: Final = _names("claim renew finish succeed register register_provenance step record_steps")
"""Statements that a worker must be able to run before it claims anything."""

TO_SERVE: Final = (*TO_WORK, *_names("enqueue_one signal audit token store_reply"))
"""Statements that a service must be able to run before it listens."""


class Permission(msgspec.Struct, frozen=True):
    """An activity of a login, and the role made for it."""

    name: str
    role: str
    statements: tuple[str, ...]


DEEDS: Final = (
    Permission("enqueue", "byrote_enqueue", ENQUEUE),
    Permission("enqueue tasks with a memo", "byrote_worker", ("enqueue_memo",)),
    Permission("work", "byrote_worker", (*ENQUEUE, *WORKER)),
    Permission("serve", "byrote_service", (*ENQUEUE, *WORKER, *SERVICE)),
    Permission("make tokens", "byrote_owner", OWNER),
    Permission("read", "byrote_read", READ),
)


class Rights(msgspec.Struct, frozen=True):
    """The facts that decide the rights of a login."""

    login: str
    roles: list[str]
    """The Byrote roles it has."""
    open_schema: bool
    """Whether every user may create objects in the schema of our tables."""
    clock_is_set: bool
    """Whether sessions can set `byrote_now()`, as tests do."""


def rights() -> Query[Rights]:
    """The name of the login and the Byrote roles it has."""
    return Query("rights", {}, lambda row: Rights(*row))


def refusals(
    connection: psycopg.Connection[Any], names: tuple[str, ...], schema: str | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the statements that this login may not run, each with PostgreSQL's reason."""
    for name in names:
        nothing = dict.fromkeys(numbered(name)[1])
        try:
            connection.execute(explanation(name, schema), nothing)
        except psycopg.errors.InsufficientPrivilege as error:
            yield name, error.diag.message_primary or ""


def demand(
    connection: psycopg.Connection[Any],
    role: str,
    names: tuple[str, ...],
    schema: str | None = None,
) -> None:
    """Raise RightMissing unless this login may run these statements, which `role` allows."""
    for name, reason in refusals(connection, names, schema):
        login = connection.info.user
        raise RightMissing(
            f"The database login {login} may not run {name}.sql: {reason}. "
            f"It needs the role {role}: as the owner of the tables, run `byrote roles --sql`, then "
            f"`grant {role} to {login}`."
        )
