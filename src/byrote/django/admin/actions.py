# SPDX-License-Identifier: MIT
"""What operators do to runs. Each verb takes ids and returns those it moved; repeats move nothing.

Whether a verb applies is decided by its statement: a user who may only hurry waiting runs cannot
revive one that has just died. A run whose row another transaction has locked is left as it is and
reported, and holds up none of the others (`store/locks.py`).
"""

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

import msgspec
from django.db import IntegrityError, transaction

from byrote.assembly.identity import new_id
from byrote.core.run import Run as StoredRun
from byrote.core.state import Status
from byrote.django.admin import replays as verdicts
from byrote.django.backend.database import fetch
from byrote.django.models import Run, TaskRun
from byrote.store import queries
from byrote.store.locks import Moves, move

BATCH_MAX = 1_000
"""Runs that one press of a button may move."""
VERIFY_MAX = 100
"""Runs that one press may have verified; each takes a worker a second or so."""


def retry(database: str, ids: Sequence[str], nonce: str) -> Moves[str]:
    """Bring dead runs back with a fresh budget."""
    del nonce
    return move(partial(queries.retry, was=Status.FAILED), ids, partial(fetch, database))


def hurry(database: str, ids: Sequence[str], nonce: str) -> Moves[str]:
    """Let waiting runs go now."""
    del nonce
    return move(partial(queries.retry, was=Status.WAITING), ids, partial(fetch, database))


def requeue(database: str, dead: Any) -> Moves[str]:
    """Bring back as many of these dead runs as one press may move, oldest first."""
    oldest = dead.order_by("finished_at").values_list("pk", flat=True)[:BATCH_MAX]
    return retry(database, [str(run_id) for run_id in oldest], "")


def cancel(database: str, ids: Sequence[str], nonce: str) -> Moves[str]:
    """Cancel unfinished runs; one whose worker has been asked already is not asked again."""
    del nonce
    asked = TaskRun.objects.using(database).filter(pk__in=ids, cancel_requested_at__isnull=False)
    done = {str(run_id) for run_id in asked.values_list("pk", flat=True)}
    wanted = [run_id for run_id in ids if run_id not in done]
    moves = move(queries.cancel, wanted, partial(fetch, database))
    return Moves([run.id for run in moves.done], moves.locked)


def replay(database: str, ids: Sequence[str], nonce: str) -> Moves[str]:
    """Enqueue the specs of these runs again; returns the ids of the new runs."""
    made = []
    for original in ids:
        run_id = replay_id(nonce, original)
        if fetch(database, queries.is_accepted(run_id)) != [True]:
            made += _replay(database, original, run_id)
    return Moves(made)


def _replay(database: str, original: str, run_id: str) -> list[str]:
    try:
        with transaction.atomic(using=database):
            return fetch(database, queries.replay(original=original, id=run_id))
    except IntegrityError:
        return []  # The same button, pressed twice at once.


def verify(database: str, ids: Sequence[str], nonce: str) -> Moves[str]:
    """Have workers execute ended runs again and compare; returns the ids of the runs that will."""
    rows = Run.objects.using(database).filter(pk__in=ids)
    made = []
    for run_id, task, queue in rows.values_list("pk", "task_path", "queue_name"):
        original = str(run_id)
        spec = verdicts.request_for(database, task, queue, original)
        if spec is not None:
            # Another id than that of a plain replay by the same page.
            asked = replay_id(f"{nonce} verify", original)
            made += fetch(database, queries.enqueue_verification(asked, spec, original=original))
    return Moves(made)


def replay_id(nonce: str, original: str) -> str:
    """The id of a run's replay by one page: a page that is sent twice replays once."""
    noise = hashlib.sha256(f"{nonce} {original}".encode()).hexdigest()
    variant = "89ab"[int(noise[0], 16) & 3]
    return str(UUID(f"{nonce.replace('-', '')[:12]}7{noise[1:4]}{variant}{noise[5:20]}"))


def read_nonce(text: str | None) -> str:
    """The id that a page was given when it was made; a new one for whoever sends none."""
    try:
        return str(UUID(text or ""))
    except ValueError:
        return new_id()


def remove(database: str, ids: Sequence[str], nonce: str) -> Moves[str]:
    """Delete finished runs."""
    del nonce
    return move(queries.delete_runs, ids, partial(fetch, database))


class Action(msgspec.Struct, frozen=True):
    """One thing that may be done to a run, and to which."""

    name: str
    label: str
    past: str
    states: frozenset[str]
    apply: Callable[[str, Sequence[str], str], Moves[str]]
    left: str
    """Why others of the selected are left as they are."""
    permission: str
    confirm: bool = False
    makes: bool = False
    """Whether it makes new runs and leaves those it is done to as they are."""
    most: int = BATCH_MAX
    """How many runs one press may be about."""

    @property
    def permission_name(self) -> str:
        """The permission, as models call it."""
        return f"{self.permission}_run"


ENDED = frozenset({"SUCCESSFUL", "FAILED", "CANCELLED"})
LIVE = frozenset({"WAITING", "READY", "RUNNING"})
VERBS = {
    verb.name: verb
    for verb in (
        Action(
            "retry",
            "Retry",
            "retried",
            frozenset({"FAILED"}),
            retry,
            "only dead runs can be retried",
            "retry",
        ),
        Action(
            "hurry",
            "Run now",
            "let go",
            frozenset({"WAITING"}),
            hurry,
            "only waiting runs can be hurried",
            "hurry",
        ),
        Action(
            "cancel",
            "Cancel",
            "cancelled, or will be as soon as their worker has heard of it",
            LIVE,
            cancel,
            "they have ended, or were asked to stop before",
            "cancel",
        ),
        Action(
            "replay",
            "Replay",
            "replayed",
            LIVE | ENDED,
            replay,
            "they are gone, or were replayed by this very page",
            "replay",
            makes=True,
        ),
        Action(
            "verify",
            "Replay and verify",
            "will be executed again by a worker; the verdict appears on the run's page",
            frozenset({"SUCCESSFUL", "FAILED"}),
            verify,
            "they did not end by themselves, or this very page has asked before",
            "verify",
            makes=True,
            most=VERIFY_MAX,
        ),
        Action(
            "delete_selected",
            "Delete",
            "deleted",
            ENDED,
            remove,
            "only runs that have ended can be deleted; cancel others first",
            "delete",
            confirm=True,
        ),
    )
}


def applies(verb: Action, run: StoredRun) -> bool:
    """Whether a verb makes sense for a run as it is now."""
    if verb.makes and run.shadow:
        return False
    if verb.name == "verify" and verdicts.is_verification(run.task):
        return False
    return run.status in verb.states
