# SPDX-License-Identifier: MIT
"""Periodic tasks in the admin: list, add, change, pause, resume, run now, delete."""

from datetime import datetime
from itertools import islice
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.utils.html import format_html
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_POST

from byrote.assembly.identity import new_id
from byrote.core.errors import BadOption
from byrote.core.ports.script import run_script
from byrote.core.schedule.schedule import Schedule, StoredSchedule, next_tick
from byrote.core.schedule.timing import ticks_after, zone_of
from byrote.django import times
from byrote.django.admin import display, periodic_form
from byrote.django.admin.actions import read_nonce, replay_id
from byrote.django.admin.base import ByroteAdmin
from byrote.django.models import PeriodicTask
from byrote.store import queries
from byrote.store.queries.enqueue import EnqueueResult, again, enqueue_unique, until_accepted

TICKS_SHOWN = 5
HEAD = 400
"""Maximum number of a spec's characters that the list shows."""
VERBS = {"pause": "pause", "resume": "pause", "run": "run", "delete": "delete"}
"""Actions on a periodic task, and the permission each needs."""


@admin.register(PeriodicTask)
class PeriodicAdmin(ByroteAdmin):
    """The periodic tasks of this database. Byrote's statements save the forms."""

    def get_urls(self) -> list[Any]:
        """The list, one page per periodic task with its buttons, and the form to add one."""
        wrap = self.admin_site.admin_view
        act = csrf_protect(require_POST(self.act_view))
        one, name = "<path:object_id>", "byrote_periodictask"
        return [
            path("", wrap(self.changelist_view), name=f"{name}_changelist"),
            path("add/", wrap(csrf_protect(self.add_view)), name=f"{name}_add"),
            path(f"{one}/change/", wrap(csrf_protect(self.change_view)), name=f"{name}_change"),
            path(f"{one}/history/", wrap(self.history_view), name=f"{name}_history"),
            path(f"{one}/do/<slug:verb>/", wrap(act), name=f"{name}_do"),
        ]

    def get_queryset(self, request: Any) -> Any:
        """The rows of this database; only the history page needs them."""
        del request
        return PeriodicTask.objects.using(self.alias())

    def has_add_permission(self, request: Any) -> bool:
        """Whether the user may add periodic tasks."""
        return self.may(request, "add_periodictask")

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        """Whether the user may change periodic tasks."""
        del obj
        return self.may(request, "change_periodictask")

    # -- Pages -----------------------------------------------------------------------------------

    def changelist_view(self, request: Any, extra_context: Any = None) -> HttpResponse:
        """The list: every periodic task and its next tick."""
        del extra_context
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = [
            {"planned": planned, **_shown(planned)} for planned in self.ask(queries.schedules())
        ]
        return self.page(
            request,
            "periodic_list.html",
            title="Periodic tasks",
            found=found,
            may_add=self.has_add_permission(request),
        )

    def add_view(self, request: Any, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """The form to add a periodic task."""
        del form_url, extra_context
        if not self.has_add_permission(request):
            raise PermissionDenied
        tasks = periodic_form.tasks_of(self.alias())
        form = periodic_form.AddForm(
            request.POST or None, initial=periodic_form.blank(), tasks=tasks
        )
        if form.is_valid():
            values = form.cleaned_data
            made = _made(form, lambda: periodic_form.added(*tasks[values["task"]], values))
            if made is not None and self._save(made, replace=False):
                self._report(request, made.name, ADDITION, "added")
                return self._to(made.name)
            if made is not None:
                form.add_error("name", f"A periodic task {made.name!r} exists already.")
        title = "Add periodic task"
        return self.page(request, "periodic_add.html", "Add", title=title, form=form)

    def change_view(
        self, request: Any, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The page of one periodic task, with a form for users who may change it."""
        del form_url, extra_context
        if not self.has_view_permission(request):
            raise PermissionDenied
        planned = self._planned(unquote(object_id))
        if planned is None:
            raise Http404(f"There is no periodic task {unquote(object_id)!r}.")
        may = self.has_change_permission(request)
        if request.method == "POST" and not may:
            raise PermissionDenied
        before = planned.schedule
        form = periodic_form.ChangeForm(
            request.POST or None, initial=periodic_form.initial_of(before)
        )
        if form.is_valid():
            values = form.cleaned_data
            made = _made(form, lambda: periodic_form.changed(self.alias(), before, values))
            if made is not None:
                self._save(made, replace=True)
                self._report(request, made.name, CHANGE, "changed")
                return self._to(made.name)
        for field in [] if may else form.fields.values():
            field.disabled = True
        return self._page_of(request, planned, form=form, may_change=may)

    def _page_of(self, request: Any, planned: StoredSchedule, **context: Any) -> HttpResponse:
        paused = planned.paused_at is not None
        buttons = {"run": "Run now", "resume" if paused else "pause": "", "delete": "Delete…"}
        return self.page(
            request,
            "periodic.html",
            planned.schedule.name,
            title=planned.schedule.name,
            planned=planned,
            retry=planned.schedule.retry_json not in {None, "{}"},
            ticks=_ticks(planned),
            buttons=[
                (verb, label or verb.capitalize())
                for verb, label in buttons.items()
                if self.may(request, f"{VERBS[verb]}_periodictask")
            ],
            nonce=new_id(),
            **_shown(planned),
            **context,
        )

    # -- Buttons ---------------------------------------------------------------------------------

    def act_view(self, request: Any, object_id: str, verb: str) -> HttpResponse:
        """Apply a button of a periodic task's page; a repeated request has no further effect."""
        if verb not in VERBS:
            raise Http404(verb)
        if not self.may(request, f"{VERBS[verb]}_periodictask"):
            raise PermissionDenied
        name = unquote(object_id)
        planned = self._planned(name)
        if planned is None:
            messages.warning(request, f"There is no periodic task {name!r}; was it deleted?")
            return self._to(None)
        if verb == "delete":
            return self._delete(request, planned)
        if verb == "run":
            return self._run(request, planned)
        if verb == "pause":
            self.ask(queries.pause_schedule(name))
            self._report(request, name, CHANGE, "paused")
        else:
            self._resume(request, planned)
        return self._to(name)

    def _resume(self, request: Any, planned: StoredSchedule) -> None:
        name = planned.schedule.name
        try:
            next_at = next_tick(planned.schedule, after=planned.now)
        except BadOption as error:
            messages.error(request, f"Periodic task {name} cannot be resumed: {error}")
            return
        self.ask(queries.resume_schedule(name, next_at=next_at))
        self._report(request, name, CHANGE, "resumed")

    def _run(self, request: Any, planned: StoredSchedule) -> HttpResponse:
        name = planned.schedule.name
        # The id follows from the page's nonce: a page that is submitted twice enqueues one run.
        run_id = replay_id(read_nonce(request.POST.get("nonce")), f"schedule {name}")
        enqueued = self._enqueue(run_id, planned.schedule)
        holder = enqueued.instead.get(run_id)
        if holder is not None:
            text = "An earlier run of {} is unfinished, so no new run was enqueued: {}."
            messages.warning(request, format_html(text, name, self._run_link(holder)))
        elif enqueued.landed:
            text = "This page has already enqueued a run of {}: {}."
            messages.warning(request, format_html(text, name, self._run_link(run_id)))
        else:
            self._log(request, name, CHANGE, f"Run now: {run_id}.")
            text = "A run of {} is enqueued: {}."
            messages.success(request, format_html(text, name, self._run_link(run_id)))
        return self._to(name)

    def _enqueue(self, run_id: str, schedule: Schedule) -> EnqueueResult:
        script = until_accepted(again(enqueue_unique([(run_id, schedule.spec)])))
        try:
            with transaction.atomic(using=self.alias()):
                return run_script(script, self.ask)
        except IntegrityError:
            return EnqueueResult(landed=True)  # The same form was submitted twice at the same time.

    def _delete(self, request: Any, planned: StoredSchedule) -> HttpResponse:
        name = planned.schedule.name
        if planned.origin == "code":
            why = "the next worker that starts would add it again. Pause it instead"
            gone = f"if the code no longer defines it, run `byrote schedules remove {name} --force`"
            messages.error(request, f"Periodic task {name} is defined in code: {why}; {gone}.")
            return self._to(name)
        if "confirmed" not in request.POST:
            context = {"title": f"Delete {name}?", "planned": planned, "back": self._to(name).url}
            return self.page(request, "periodic_delete.html", "Delete", **context)
        self.ask(queries.delete_schedule(name))
        self._report(request, name, DELETION, "deleted")
        return self._to(None)

    # -- Helpers ---------------------------------------------------------------------------------

    def _planned(self, name: str) -> StoredSchedule | None:
        found = self.ask(queries.schedules(name=name))
        return found[0] if found else None

    def _save(self, made: Schedule, *, replace: bool) -> bool:
        """Store a schedule; False if its name is taken and `replace` is False."""
        [now] = self.ask(queries.now())
        next_at = next_tick(made, after=now)
        return self.ask(queries.save_schedule(made, next_at=next_at, replace=replace)) != []

    def _report(self, request: Any, name: str, flag: int, done: str) -> None:
        messages.success(request, f"Periodic task {name} is {done}.")
        self._log(request, name, flag, f"{done.capitalize()}.")

    def _log(self, request: Any, name: str, flag: int, entry: str) -> None:
        LogEntry.objects.log_actions(
            user_id=request.user.pk,
            queryset=[PeriodicTask(name=name)],
            action_flag=flag,
            change_message=entry,
        )

    def _run_link(self, run_id: str) -> Any:
        where = reverse("admin:byrote_run_change", args=[run_id], current_app=self.admin_site.name)
        return format_html('<a href="{}">{}</a>', where, run_id)

    def _to(self, name: str | None) -> HttpResponseRedirect:
        view, args = ("changelist", []) if name is None else ("change", [quote(name)])
        where = f"admin:byrote_periodictask_{view}"
        return HttpResponseRedirect(reverse(where, args=args, current_app=self.admin_site.name))


def _made(form: Any, make: Any) -> Schedule | None:
    """Return the schedule that a form describes; None after adding an error to the form."""
    try:
        return make()  # type: ignore[no-any-return]
    except periodic_form.REFUSALS as error:
        form.add_error(None, str(error))
        return None


def _shown(planned: StoredSchedule) -> dict[str, Any]:
    schedule = planned.schedule
    return {
        "state": times.badge(planned.state),
        "call": display.call(schedule.spec_json[:HEAD], len(schedule.spec_json)),
        "next_at": "" if planned.paused_at else times.moment(planned.next_at),
        "last_at": times.moment(planned.last_at),
    }


def _ticks(planned: StoredSchedule) -> list[tuple[datetime, str]]:
    """The next ticks, each with its local time in the schedule's time zone."""
    schedule = planned.schedule
    try:
        zone = zone_of(schedule.zone)
        found = list(islice(ticks_after(schedule.timing, schedule.zone, planned.now), TICKS_SHOWN))
    except BadOption:
        return []  # The page shows the reason as the schedule's fault.
    return [(tick, f"{tick.astimezone(zone):%Y-%m-%d %H:%M:%S %Z}") for tick in found]
