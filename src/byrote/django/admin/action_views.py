# SPDX-License-Identifier: MIT
"""Actions as buttons and list actions: apply them, show messages, write the admin's log."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME, ActionForm
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.http import HttpResponse

from byrote.assembly.identity import new_id
from byrote.core.ports.replies import locked_text
from byrote.django.admin.actions import BATCH_MAX, Action, read_nonce
from byrote.django.models import Run
from byrote.store.locks import Moves


class NoncedActionForm(ActionForm):
    """The list's action form; its nonce makes a form that is submitted twice act once."""

    nonce = forms.CharField(
        required=False, label="", initial=new_id, widget=forms.HiddenInput, max_length=36
    )


def action_of(verb: Action) -> Any:
    """Return the list action of the Django admin for an `Action`."""

    @admin.action(permissions=[verb.permission], description=f"{verb.label} selected runs")
    def act(model_admin: Any, request: Any, queryset: Any) -> HttpResponse | None:
        most = min(verb.most, BATCH_MAX)
        picked = queryset.values_list("pk", flat=True)[: most + 1]
        ids = [str(run_id) for run_id in picked]
        if len(ids) > most:
            messages.error(request, f"Select up to {most:,} runs at a time.")
            return None
        if verb.confirm and "confirmed" not in request.POST:
            hidden = [("action", verb.name), *((ACTION_CHECKBOX_NAME, run_id) for run_id in ids)]
            back = request.get_full_path()
            return confirm(model_admin, request, verb, ids, back=back, hidden=hidden)
        do(model_admin, request, verb, ids)
        return None

    act.__name__ = verb.name
    return act


def confirm(
    model_admin: Any,
    request: Any,
    verb: Action,
    ids: Sequence[str],
    *,
    back: str,
    hidden: Sequence[tuple[str, str]] = (),
) -> HttpResponse:
    """Return the page that asks the user to confirm an action."""
    context = {
        "title": f"{verb.label} {_runs(len(ids))}?",
        "subtitle": None,
        "verb": verb,
        "hidden": hidden,
        "runs": Run.objects.using(model_admin.alias()).filter(pk__in=ids).only(*CONFIRMED)[:20],
        "others": max(len(ids) - 20, 0),
        "back": back,
    }
    page: HttpResponse = model_admin.page(request, "confirm.html", verb.label, **context)
    return page


CONFIRMED = ("result_id", "task_path", "status")


def do(model_admin: Any, request: Any, verb: Action, ids: Sequence[str]) -> list[str]:
    """Apply the action, show messages, write the admin's log; returns the affected ids."""
    alias = model_admin.alias()
    nonce = read_nonce(request.POST.get("nonce"))
    names = Run.objects.using(alias).filter(pk__in=ids).values_list("pk", "task_path")
    known = {str(run_id): task for run_id, task in names}
    moves = verb.apply(alias, list(ids), nonce)
    moved = moves.done
    if moved:
        messages.success(request, f"{_runs(len(moved))} {verb.past}.")
    warn_of_locked(request, moves)
    left = len(ids) - len(moved) - len(moves.locked)
    if left:
        messages.warning(request, f"{_runs(left)} unchanged: {verb.left}.")
    # For a replay, log the original run; the new run refers to it in `replay_of`.
    logged = list(ids) if verb.makes and moved else moved
    log(request, {run_id: known.get(run_id, "") for run_id in logged}, verb)
    return moved


def warn_of_locked(request: Any, moves: Moves[str]) -> None:
    """Warn about runs that were not changed because their rows are locked."""
    if moves.locked:
        messages.warning(request, locked_text(len(moves.locked)))


def log(request: Any, runs: dict[str, str], verb: Action) -> None:
    """Write to the admin's log which user did what to which runs."""
    if not runs:
        return
    LogEntry.objects.log_actions(
        user_id=request.user.pk,
        queryset=[Run(result_id=run_id, task_path=task) for run_id, task in runs.items()],
        action_flag=DELETION if verb.permission == "delete" else CHANGE,
        change_message=f"{verb.label}.",
    )


def _runs(number: int) -> str:
    return "1 run" if number == 1 else f"{number:,} runs"
