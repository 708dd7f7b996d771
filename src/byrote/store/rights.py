# SPDX-License-Identifier: MIT
"""Which database role each statement takes, and what a login may do.

`LEAST` names, for every file of `sql/`, the least of the roles that may run it; a role may also run
what the roles before it may. `READ` lists what `byrote_read` may run, which stands beside them.
The rights themselves are granted by `roles.sql`; PostgreSQL checks them when a statement is
explained, so a login finds out what it lacks without executing anything.
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
bounds databases end_sessions enqueue enqueue_one enqueue_unique homes key_holders known known_times
now patience ready rights schema session uptime verify_catalog writable
""")

WORKER: Final = _names("""
archive archive_around artifact artifact_home artifacts blob bookmark briefs cancel chain claim
claimed counting cursor dead dead_outline delete_dead deregister duties ended enqueue_memo events
facts fail_unserved finish forget heartbeat held history history_outline holding idle latest_by_hash
locked marks names note_unserved once originals outcome outlines outputs partition pause_schedule
progress progressed progressing progressing_outline promote provenances prunable prune
prune_artifacts prune_blobs prune_memos pulse queues referred register register_provenance
remembered renew replay replays resume_schedule retry run runs runs_at schedule schedules
schedules_outline settled shadow signal standing step steps steps_outline strangers stream succeed
sweep tell tick timeline unfinished unmark unschedule unserved_tasks verify_chain verify_events
verify_head verify_later verify_malformed verify_recorded verify_runs verify_scene verify_stored
verify_written watch watched whereabouts worker workers workers_at
""")

SERVICE: Final = _names("""
audit count_stats depths keep key keyed pause prune_service quieten recount resume set_unserved
stats task_depths token tokens use_tokens
""")

OWNER: Final = _names("audits create_token extend_token remove revoke_token rotate_token")

READ: Final = _names("""
artifacts bounds counting cursor databases dead_outline depths ended events facts history_outline
homes known latest_by_hash names now originals outlines patience progressed progressing_outline
provenances prunable pulse queues replays rights schedules_outline schema session standing stats
steps_outline task_depths timeline unserved_tasks verify_catalog verify_scene whereabouts workers
workers_at writable
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

TO_WORK: Final = _names("claim renew finish succeed register register_provenance step")
"""What a worker must be able to run before it claims anything."""

TO_SERVE: Final = (*TO_WORK, *_names("enqueue_one signal audit token key count_stats"))
"""What a service must be able to run before it listens."""


class Deed(msgspec.Struct, frozen=True):
    """Something a login may want to do, and the role made for it."""

    name: str
    role: str
    statements: tuple[str, ...]


DEEDS: Final = (
    Deed("enqueue", "byrote_enqueue", ENQUEUE),
    Deed("enqueue tasks with a memo", "byrote_worker", ("enqueue_memo",)),
    Deed("work", "byrote_worker", (*ENQUEUE, *WORKER)),
    Deed("serve", "byrote_service", (*ENQUEUE, *WORKER, *SERVICE)),
    Deed("make tokens", "byrote_owner", OWNER),
    Deed("read", "byrote_read", READ),
)


class Rights(msgspec.Struct, frozen=True):
    """What decides about the rights of a login."""

    login: str
    roles: list[str]
    """Those of ours that it has."""
    open_schema: bool
    """Whether every user may create objects beside our tables."""
    clock_is_set: bool
    """Whether sessions can set `byrote_now()`, as tests do."""


def rights() -> Query[Rights]:
    """Who the login is and which of our roles it has."""
    return Query("rights", {}, lambda row: Rights(*row))


def refusals(
    connection: psycopg.Connection[Any], names: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """The statements among `names` that this login may not run, each with PostgreSQL's reason."""
    for name in names:
        nothing = dict.fromkeys(numbered(name)[1])
        try:
            connection.execute(explanation(name), nothing)
        except psycopg.errors.InsufficientPrivilege as error:
            yield name, error.diag.message_primary or ""


def demand(connection: psycopg.Connection[Any], role: str, names: tuple[str, ...]) -> None:
    """Raise RightMissing unless this login may run these statements, for which `role` is made."""
    for name, reason in refusals(connection, names):
        login = connection.info.user
        raise RightMissing(
            f"The database login {login} may not run {name}.sql: {reason}. "
            f"It needs the role {role}: as the owner of the tables, run `byrote roles --sql`, then "
            f"`grant {role} to {login}`."
        )
