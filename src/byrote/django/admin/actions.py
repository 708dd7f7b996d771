# SPDX-License-Identifier: MIT
"""Operators' actions on runs. Each takes ids and returns those it changed; repeats change nothing.

The SQL statement decides whether an action applies: a user who may only hurry waiting runs cannot
revive one that has just failed. A run whose row another transaction has locked is not changed and
is reported; it does not delay the others (`store/locks.py`).
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
from byrote.core.state import FINAL, Status
from byrote.core.text.ids import uuid7
from byrote.django.admin import replays as verdicts
from byrote.django.backend.database import fetch
from byrote.django.models import Run, TaskRun
from byrote.store import queries
from byrote.store.locks import Moves, move

BATCH_MAX = 1_000
"""Maximum number of runs per request."""
VERIFY_MAX = 100
"""Maximum number of runs to verify per request; each occupies a worker for about a second."""


def retry(database: str, ids: Sequence[str], nonce: str) -> Moves[str]:
    """Make dead runs ready again with a fresh budget of attempts."""
    del nonce
    return move(partial(queries.retry, was=Status.FAILED), ids, partial(fetch, database))


def hurry(database: str, ids: Sequence[str], nonce: str) -> Moves[str]:
    """Make waiting runs ready now."""
    del nonce
    return move(partial(queries.retry, was=Status.WAITING), ids, partial(fetch, database))


def requeue(database: str, dead: Any) -> Moves[str]:
    """Retry the oldest of these dead runs, up to `BATCH_MAX`."""
    oldest = dead.order_by("finished_at").values_list("pk", flat=True)[:BATCH_MAX]
    return retry(database, [str(run_id) for run_id in oldest], "")


def cancel(database: str, ids: Sequence[str], nonce: str) -> Moves[str]:
    """Cancel unfinished runs, except those for which cancellation was requested before."""
    del nonce
    asked = TaskRun.objects.using(database).filter(pk__in=ids, cancel_requested_at__isnull=False)
    done = {str(run_id) for run_id in asked.values_list("pk", flat=True)}
    left = [run_id for run_id in ids if run_id not in done]
    moves = move(queries.cancel, left, partial(fetch, database))
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
        return []  # The same form was submitted twice at the same time.


def verify(database: str, ids: Sequence[str], nonce: str) -> Moves[str]:
    """Enqueue verifications of ended runs; returns the ids of the verifying runs."""
    rows = Run.objects.using(database).filter(pk__in=ids)
    made = []
    for run_id, task, queue in rows.values_list("pk", "task_path", "queue_name"):
        original = str(run_id)
        spec = verdicts.request_for(database, task, queue, original)
        if spec is not None:
            # The id must differ from that of a plain replay from the same page.
            asked = replay_id(f"{nonce} verify", original)
            made += fetch(database, queries.enqueue_verification(asked, spec, original=original))
    return Moves(made)


def replay_id(nonce: str, original: str) -> str:
    """Return the id of a replay from one page, so that a page submitted twice replays once."""
    noise = hashlib.sha256(f"{nonce} {original}".encode()).hexdigest()
    return uuid7(int(nonce.replace("-", "")[:12], 16), noise[:3], noise[3:19])


def read_nonce(text: str | None) -> str:
    """Return the nonce that the page was rendered with; a new one if it is absent or malformed."""
    try:
        return str(UUID(text or ""))
    except ValueError:
        return new_id()


def remove(database: str, ids: Sequence[str], nonce: str) -> Moves[str]:
    """Delete finished runs."""
    del nonce
    return move(queries.delete_runs, ids, partial(fetch, database))


class Action(msgspec.Struct, frozen=True):
    """An action on runs, and the statuses it applies to."""

    name: str
    label: str
    past: str
    states: frozenset[str]
    apply: Callable[[str, Sequence[str], str], Moves[str]]
    left: str
    """Why the other selected runs are not changed."""
    permission: str
    confirm: bool = False
    makes: bool = False
    """Whether the action enqueues new runs and does not change the selected ones."""
    most: int = BATCH_MAX
    """Maximum number of runs per request."""

    @property
    def permission_name(self) -> str:
        """The codename of the permission on the model."""
        return f"{self.permission}_run"


LIVE = frozenset(Status) - FINAL
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
            "will run now",
            frozenset({"WAITING"}),
            hurry,
            "only waiting runs can be started early",
            "hurry",
        ),
        Action(
            "cancel",
            "Cancel",
            "cancelled; a running one stops as soon as its worker receives the request",
            LIVE,
            cancel,
            "already ended, or already asked to stop",
            "cancel",
        ),
        Action(
            "replay",
            "Replay",
            "replayed",
            frozenset(Status),
            replay,
            "deleted meanwhile, or already replayed from this page",
            "replay",
            makes=True,
        ),
        Action(
            "verify",
            "Replay and verify",
            "will be executed again by a worker; the verdict appears on the run's page",
            frozenset({"SUCCESSFUL", "FAILED"}),
            verify,
            "only runs that succeeded or failed can be verified, and only once from this page",
            "verify",
            makes=True,
            most=VERIFY_MAX,
        ),
        Action(
            "delete_selected",
            "Delete",
            "deleted",
            FINAL,
            remove,
            "only runs that have ended can be deleted; cancel the others first",
            "delete",
            confirm=True,
        ),
    )
}


def applies(verb: Action, run: StoredRun) -> bool:
    """Whether an action applies to a run in its current status."""
    if verb.makes and run.shadow:
        return False
    if verb.name == "verify" and verdicts.is_verification(run.task):
        return False
    return run.status in verb.states
