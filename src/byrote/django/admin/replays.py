# SPDX-License-Identifier: MIT
"""Verifications of runs: how the admin enqueues them, and how it shows their verdicts."""

from collections.abc import Sequence
from typing import Any

import msgspec
from django.db.models import Q

from byrote.core.run import Run as StoredRun
from byrote.core.spec import Delivery, Spec, describe
from byrote.django import compat
from byrote.django.backend.backend import VERSION, Backend
from byrote.django.models import Run
from byrote.django.tasks import verify

PATH: str = verify.module_path
OURS = Q(task_path=PATH) | Q(task_path__endswith=f":{PATH}")
SHOWN = 5
"""Verdicts on one run that its page shows, newest first."""
STATES = {"same": "successful", "differs": "failed", "not replayable": "cancelled"}


class Difference(msgspec.Struct, frozen=True):
    """One path at which the original and the replay differ; values are JSON texts."""

    path: str
    old: str
    new: str


class Differences(msgspec.Struct, frozen=True):
    """Differences between the original and the replay; `cut` if some are not listed."""

    changes: Sequence[Difference] = ()
    cut: bool = False


class StoredVerdict(msgspec.Struct, frozen=True):
    """The result of a verification, as written by `verification.stored_form`."""

    verdict: str = ""
    replay: str | None = None
    reason: str = ""
    status: tuple[str, str] = ("", "")
    result: Differences = Differences()
    artifacts: Differences = Differences()
    provenance: Differences = Differences()


class VerdictView(msgspec.Struct, frozen=True):
    """One verification as the page shows it."""

    run_id: str
    word: str
    """`same`, `differs` or `not replayable`; the status of a verification that has none yet."""
    state: str
    summary: str
    """The verdict in a sentence, or why there is none."""
    shadow: str | None
    """The id of the shadow run; None if it was pruned."""
    parts: Sequence[tuple[str, Differences]]


# -- Enqueueing ----------------------------------------------------------------------------------


def is_verification(task: str) -> bool:
    """Whether a run of this task verifies another one."""
    return task.rpartition(":")[2] == PATH


def request_for(database: str, task: str, queue: str, original: str) -> Spec | None:
    """The spec that verifies a run; None if no Byrote backend would execute it."""
    if is_verification(task):
        return None
    for backend in compat.task_backends.all():
        if not isinstance(backend, Backend) or backend.database != database:
            continue
        if backend.path_of(task) is not None:
            served = queue in backend.queues or not backend.queues
            delivery = Delivery(queue=queue if served else min(backend.queues))
            return describe(backend.name_of(PATH), VERSION, [original], {}, delivery=delivery)
    return None


# -- Showing -------------------------------------------------------------------------------------


def verdicts_on(database: str, run: StoredRun) -> list[VerdictView]:
    """The newest verdicts on a run; for a verification, its own verdict."""
    rows = Run.objects.using(database)
    if is_verification(run.task):
        found = rows.filter(pk=run.id)
    else:
        found = rows.filter(OURS, replay_of=run.id).order_by("-result_id")[:SHOWN]
    stored = [(row, _stored(row)) for row in found]
    shadows = [verdict.replay for _, verdict in stored if verdict.replay]
    ids = rows.filter(pk__in=shadows).values_list("pk", flat=True) if shadows else ()
    existing = {str(run_id) for run_id in ids}
    return [_verdict(row, verdict, existing) for row, verdict in stored]


def _stored(row: Any) -> StoredVerdict:
    try:
        return msgspec.json.decode(row.return_json or "{}", type=StoredVerdict)
    except msgspec.MsgspecError:
        return StoredVerdict()  # The page of an altered row must still open.


def _verdict(row: Any, stored: StoredVerdict, existing: set[str]) -> VerdictView:
    word = stored.verdict or row.status.lower()
    parts = [(name, getattr(stored, name)) for name in ("result", "artifacts", "provenance")]
    return VerdictView(
        run_id=str(row.result_id),
        word=word,
        state=STATES.get(word, word),
        summary=_sentence(row, stored),
        shadow=stored.replay if stored.replay in existing else None,
        parts=[(name, found) for name, found in parts if found.changes],
    )


def _sentence(row: Any, stored: StoredVerdict) -> str:
    match stored.verdict, row.status:
        case "same", _:
            return "The replay ended with the same outcome."
        case "differs", _:
            then, now = stored.status
            return "" if then == now else f"The original run is {then}, the replay is {now}."
        case "not replayable", _:
            return stored.reason
        case _, "FAILED":
            last = (row.errors_json or [{}])[-1]
            return f"The verification itself failed: {last.get('message', '')}"
        case _, "CANCELLED":
            return "The verification was cancelled."
        case _:
            return "A worker will execute the run again; reload this page to see the verdict."
