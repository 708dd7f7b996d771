# SPDX-License-Identifier: MIT
"""Runs that verify others: how the admin asks for them, and what it shows of their verdicts."""

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
    """One place where then and now differ; values are JSON texts."""

    path: str
    old: str
    new: str


class Differences(msgspec.Struct, frozen=True):
    """Where then and now differ, and whether there is more than is listed."""

    changes: Sequence[Difference] = ()
    cut: bool = False


class StoredVerdict(msgspec.Struct, frozen=True):
    """The result of a verification, as `verification.told` has written it."""

    verdict: str = ""
    replay: str | None = None
    reason: str = ""
    status: tuple[str, str] = ("", "")
    result: Differences = Differences()
    artifacts: Differences = Differences()
    provenance: Differences = Differences()


class VerdictView(msgspec.Struct, frozen=True):
    """One verification as a page shows it."""

    run_id: str
    word: str
    """`same`, `differs` or `not replayable`; the status of a verification that has none yet."""
    state: str
    said: str
    """The verdict in a sentence, or why there is none."""
    shadow: str | None
    """The id of the shadow run, as long as it is kept."""
    parts: Sequence[tuple[str, Differences]]


# -- Asking --------------------------------------------------------------------------------------


def is_verification(task: str) -> bool:
    """Whether a run of this task verifies another one."""
    return task.rpartition(":")[2] == PATH


def request_for(database: str, task: str, queue: str, original: str) -> Spec | None:
    """What is to be enqueued to verify a run; None when no backend of ours would execute it."""
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
    """The newest verdicts on a run; on the page of a verification, its own."""
    rows = Run.objects.using(database)
    if is_verification(run.task):
        found = rows.filter(pk=run.id)
    else:
        found = rows.filter(OURS, replay_of=run.id).order_by("-result_id")[:SHOWN]
    told = [(row, _told(row)) for row in found]
    shadows = [said.replay for _, said in told if said.replay]
    kept = rows.filter(pk__in=shadows).values_list("pk", flat=True) if shadows else ()
    there = {str(run_id) for run_id in kept}
    return [_verdict(row, said, there) for row, said in told]


def _told(row: Any) -> StoredVerdict:
    try:
        return msgspec.json.decode(row.return_json or "{}", type=StoredVerdict)
    except msgspec.MsgspecError:
        return StoredVerdict()  # An altered row still opens.


def _verdict(row: Any, told: StoredVerdict, there: set[str]) -> VerdictView:
    word = told.verdict or row.status.lower()
    parts = [(name, getattr(told, name)) for name in ("result", "artifacts", "provenance")]
    return VerdictView(
        run_id=str(row.result_id),
        word=word,
        state=STATES.get(word, word),
        said=_sentence(row, told),
        shadow=told.replay if told.replay in there else None,
        parts=[(name, found) for name, found in parts if found.changes],
    )


def _sentence(row: Any, told: StoredVerdict) -> str:
    match told.verdict, row.status:
        case "same", _:
            return "It ended as it did then."
        case "differs", _:
            then, now = told.status
            return "" if then == now else f"It was {then} and is {now} now."
        case "not replayable", _:
            return told.reason
        case _, "FAILED":
            last = (row.errors_json or [{}])[-1]
            return f"The verification itself failed: {last.get('message', '')}"
        case _, "CANCELLED":
            return "The verification was cancelled."
        case _:
            return "A worker will execute it again; reload this page for the verdict."
