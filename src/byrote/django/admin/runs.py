# SPDX-License-Identifier: MIT
"""Runs in the admin: one list of live, finished and dead runs, and a page for each run."""

from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models.fields.json import KT
from django.db.models.functions import Left, Length
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.utils.http import content_disposition_header
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_POST

from byrote.assembly.identity import new_id
from byrote.core.artifact import POSTGRES
from byrote.core.run import Run as StoredRun
from byrote.django import times
from byrote.django.admin import actions as verbs
from byrote.django.admin import display, filters, run_page, search
from byrote.django.admin.action_views import (
    NoncedActionForm,
    action_of,
    confirm,
    do,
    log,
    warn_of_locked,
)
from byrote.django.admin.base import ByroteAdmin
from byrote.django.admin.run_list import RunList
from byrote.django.models import DeadRun, Run
from byrote.store import queries

HEAD = 400
"""Characters of a spec that the list reads."""
COLUMNS = (
    *(
        "result_id",
        "task_path",
        "status",
        "wait_reason",
        "queue_name",
        "priority",
        "attempts",
        "charged",
    ),
    *("max_attempts", "run_after", "enqueued_at", "started_at", "last_attempted_at"),
    *("finished_at", "cancel_requested_at", "leased_by", "replay_of"),
)
DOCUMENTS = {"spec": "spec_json", "result": "result_json"}
REQUEUE = verbs.Action(
    "requeue", "Requeue", "requeued", frozenset({"FAILED"}), verbs.retry, "", "requeue"
)


@admin.register(Run)
class RunAdmin(ByroteAdmin):
    """The list of runs, their pages and actions."""

    list_display = ("task", "state", "queue", "tries", "enqueued", "took")
    list_display_links = ("task",)
    list_filter = (
        filters.StatusFilter,
        filters.QueueFilter,
        filters.TaskFilter,
        filters.AgeFilter,
        filters.LabelFilter,
    )
    search_fields = ("result_id",)
    search_help_text = search.HELP
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by = ()
    list_per_page = 100
    actions: ClassVar = [action_of(verb) for verb in verbs.VERBS.values()]
    action_form = NoncedActionForm
    change_list_template = "admin/byrote/runs.html"

    # -- The list --------------------------------------------------------------------------------

    def rows(self, table: Any) -> Any:
        """The rows of a table of runs with the columns of the list; large texts are truncated."""
        rows = table.objects.using(self.alias()).only(*COLUMNS)
        # Shadow runs only verify others; the pages of their originals link to them.
        return rows.exclude(shadow=True).annotate(
            head=Left("spec_json", HEAD),
            size=Length("spec_json"),
            error=KT("errors_json__-1__type"),
            complaint=Left(KT("errors_json__-1__message"), 200),
        )

    def get_queryset(self, request: Any) -> Any:
        """Every run."""
        del request
        return self.rows(Run)

    def get_changelist(self, request: Any, **kwargs: Any) -> Any:
        """Use keyset pagination instead of Django's COUNT and OFFSET."""
        del request, kwargs
        return RunList

    def get_search_results(self, request: Any, queryset: Any, search_term: str) -> Any:
        """The runs that match the search term; an error message if it cannot be searched for."""
        if not search_term.strip():
            return queryset, False
        found = search.find(queryset, search_term)
        if found is None:
            messages.error(request, f"This text cannot be searched for. {search.HELP}")
            found = queryset.none()
        return found, False

    def changelist_view(self, request: Any, extra_context: Any = None) -> HttpResponse:
        """The list; with status FAILED, also a button to requeue all dead runs it matches."""
        dead = request.GET.get("status") == "FAILED" and self.may(request, "requeue_run")
        tools = {"requeue": f"requeue/?{request.GET.urlencode()}" if dead else None}
        answer: HttpResponse = super().changelist_view(request, {**tools, **(extra_context or {})})
        return answer

    @admin.display(description="Task")
    def task(self, run: Any) -> Any:
        """The task's path and its arguments."""
        return display.titled(run.task_path, display.call(run.head, run.size))

    @admin.display(description="Status")
    def state(self, run: Any) -> Any:
        """The status, and a note on it."""
        return display.titled(times.badge(run.status), self.note(run))

    @admin.display(description="Queue")
    def queue(self, run: Any) -> str:
        """The run's queue."""
        return str(run.queue_name)

    @admin.display(description="Attempts")
    def tries(self, run: Any) -> str:
        """How many attempts count against the limit, and how many do not count."""
        tried = f"{run.charged} of {run.max_attempts}"
        more = run.attempts - run.charged - (run.status == "RUNNING")
        return f"{tried}, and {more} not counted" if more > 0 else tried

    @admin.display(description="Enqueued")
    def enqueued(self, run: Any) -> Any:
        """How long ago the run was enqueued."""
        return times.moment(run.enqueued_at)

    @admin.display(description="Took")
    def took(self, run: Any) -> str:
        """How long the last attempt took."""
        if run.finished_at is None or run.last_attempted_at is None:
            return ""
        return times.rough(run.finished_at - run.last_attempted_at)

    def note(self, run: Any) -> str:
        """The last error, the reason of the wait, or the worker's name."""
        if run.status == "WAITING":
            return times.wait(run.wait_reason, run.run_after)
        if run.status == "RUNNING":
            return "asked to stop" if run.cancel_requested_at else f"by {run.leased_by}"
        if run.status != "FAILED" or not run.error:
            return ""
        return display.cut(
            f"{run.error.rpartition('.')[2]}: {run.complaint or ''}", display.NOTE_MAX
        )

    # -- Permissions -----------------------------------------------------------------------------

    def has_delete_permission(self, request: Any, obj: Any = None) -> bool:
        """Whether the user may delete runs that have ended."""
        del obj
        return self.may(request, "delete_run")

    def has_retry_permission(self, request: Any) -> bool:
        """Whether the user may retry dead runs."""
        return self.may(request, "retry_run")

    def has_hurry_permission(self, request: Any) -> bool:
        """Whether the user may start waiting runs early."""
        return self.may(request, "hurry_run")

    def has_cancel_permission(self, request: Any) -> bool:
        """Whether the user may cancel runs."""
        return self.may(request, "cancel_run")

    def has_replay_permission(self, request: Any) -> bool:
        """Whether the user may replay runs."""
        return self.may(request, "replay_run")

    def has_verify_permission(self, request: Any) -> bool:
        """Whether the user may have workers replay runs and verify their results."""
        return self.may(request, "verify_run")

    # -- Pages -----------------------------------------------------------------------------------

    def get_urls(self) -> list[Any]:
        """The list, and the page of a run with its buttons and downloads; no edit form."""
        wrap = self.admin_site.admin_view
        act = csrf_protect(require_POST(self.act_view))
        one = "<uuid:run_id>"
        return [
            path("", wrap(self.changelist_view), name="byrote_run_changelist"),
            path("requeue/", wrap(csrf_protect(self.requeue_view)), name="byrote_run_requeue"),
            path(f"{one}/change/", wrap(self.run_view), name="byrote_run_change"),
            path("<path:object_id>/history/", wrap(self.history_view), name="byrote_run_history"),
            path(f"{one}/do/<slug:name>/", wrap(act), name="byrote_run_do"),
            path(f"{one}/<slug:part>.json", wrap(self.document_view), name="byrote_run_document"),
            path(
                f"{one}/artifacts/<int:attempt>/<path:name>",
                wrap(self.artifact_view),
                name="byrote_run_artifact",
            ),
        ]

    def stored(self, request: Any, run_id: UUID) -> StoredRun:
        """Return the run with this id; raises PermissionDenied or Http404."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = self.ask(queries.run(str(run_id)))
        if not found:
            raise Http404(f"The run {run_id} does not exist; it may have been pruned or deleted.")
        return found[0]

    def run_view(self, request: Any, run_id: UUID) -> HttpResponse:
        """The page of one run."""
        run = self.stored(request, run_id)
        allowed = [
            verb
            for verb in verbs.VERBS.values()
            if verbs.applies(verb, run) and self.may(request, verb.permission_name)
        ]
        context = run_page.read(self.alias(), run)
        return self.page(
            request,
            "run.html",
            run.id,
            title=run.task,
            subtitle=run.id,
            verbs=allowed,
            nonce=new_id(),
            **context,
        )

    def act_view(self, request: Any, run_id: UUID, name: str) -> HttpResponse:
        """Apply a button of a run's page."""
        verb = verbs.VERBS.get(name)
        if verb is None:
            raise Http404(name)
        if not self.may(request, verb.permission_name):
            raise PermissionDenied
        if verb.confirm and "confirmed" not in request.POST:
            return confirm(self, request, verb, [str(run_id)], back=self._to(str(run_id)).url)
        moved = do(self, request, verb, [str(run_id)])
        if verb.name == "replay" and moved:
            return self._to(moved[0])
        known = self.ask(queries.is_accepted(str(run_id))) == [True]
        return self._to(str(run_id)) if known else self._to_list()

    def requeue_view(self, request: Any) -> HttpResponse:
        """Retry the dead runs that the list matches, up to `BATCH_MAX` per request."""
        if not self.may(request, "requeue_run"):
            raise PermissionDenied
        dead = self.get_changelist_instance(request).get_queryset(request)
        if dead.model is not DeadRun:
            raise Http404("Only dead runs can be requeued; filter the list by status FAILED.")
        if request.method != "POST":
            some = list(dead[: verbs.BATCH_MAX + 1])
            return self.page(
                request,
                "requeue.html",
                "Requeue",
                title="Requeue dead runs",
                **_requeue(request, some),
            )
        moves = verbs.requeue(self.alias(), dead)
        log(request, dict.fromkeys(moves.done, ""), REQUEUE)
        left = dead.exclude(pk__in=moves.locked).exists()
        more = " More are left; press the button again to requeue them." if left else ""
        messages.success(request, f"{len(moves.done):,} dead runs were requeued.{more}")
        warn_of_locked(request, moves)
        return HttpResponseRedirect(f"../?{request.GET.urlencode()}")

    def document_view(self, request: Any, run_id: UUID, part: str) -> HttpResponse:
        """Download a spec or a result, byte for byte as it is stored."""
        run = self.stored(request, run_id)
        text = getattr(run, DOCUMENTS[part]) if part in DOCUMENTS else None
        if text is None:
            raise Http404(part)
        return _download(text.encode(), f"{run_id}-{part}.json", "application/json")

    def artifact_view(self, request: Any, run_id: UUID, attempt: int, name: str) -> HttpResponse:
        """Download an artifact whose content is in the database."""
        run = self.stored(request, run_id)
        for entry in self.ask(queries.artifacts(run.id)):
            if (entry.attempt, entry.name, entry.location) == (attempt, name, POSTGRES):
                for content in self.ask(queries.blob(entry.hash)):
                    return _download(content, name.rpartition("/")[2], "application/octet-stream")
        raise Http404(name)

    def _to(self, run_id: str) -> HttpResponseRedirect:
        where = reverse("admin:byrote_run_change", args=[run_id], current_app=self.admin_site.name)
        return HttpResponseRedirect(where)

    def _to_list(self) -> HttpResponseRedirect:
        where = reverse("admin:byrote_run_changelist", current_app=self.admin_site.name)
        return HttpResponseRedirect(where)


def _requeue(request: Any, some: list[Any]) -> dict[str, Any]:
    return {
        "number": display.count(len(some[: verbs.BATCH_MAX]), whole=len(some) <= verbs.BATCH_MAX),
        "runs": some[:20],
        "limit": verbs.BATCH_MAX,
        "back": f"../?{request.GET.urlencode()}",
        "subtitle": None,
    }


def _download(content: bytes, name: str, media_type: str) -> HttpResponse:
    answer = HttpResponse(content, content_type=media_type)
    # Always a download: the content may be an HTML page with scripts.
    answer["Content-Disposition"] = content_disposition_header(True, name)
    answer["X-Content-Type-Options"] = "nosniff"
    return answer
