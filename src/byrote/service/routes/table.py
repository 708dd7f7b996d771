# SPDX-License-Identifier: MIT
"""Every route: who may use it, what it takes, what it answers. The app and OpenAPI read it here."""

from collections.abc import Sequence
from typing import Any, Final

from byrote.service.http.openapi import BYTES
from byrote.service.http.request import Endpoint, RouteHandler
from byrote.service.routes import (
    bulk,
    dead,
    downloads,
    events,
    health,
    leases,
    metrics,
    progress,
    queues,
    runs,
    stats,
    steps,
    uploads,
    workers,
)
from byrote.wire import bulk as wire_bulk
from byrote.wire import leases as worker
from byrote.wire import messages
from byrote.wire import progress as wire_progress

READ: Final = ("read",)
SEND: Final = ("enqueue",)
WORK: Final = ("work",)
SEE: Final = ("read", "enqueue", "work")

RUNS: Final[Sequence[Endpoint]] = (
    Endpoint(
        method="POST",
        path="/v1/runs",
        handler=runs.enqueue,
        body=messages.NewRuns,
        reply=messages.Accepted,
        batch_reply=messages.AcceptedRuns,
        roles=SEND,
        status=201,
        found=True,
        refusals=(409,),
        keyed=True,
    ),
    Endpoint(
        method="GET",
        path="/v1/runs",
        handler=runs.list_runs,
        query=runs.Filters,
        reply=messages.RunPage,
        roles=READ,
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/cancel",
        handler=bulk.cancel_many,
        body=wire_bulk.ChosenRuns,
        reply=wire_bulk.MatchedRuns,
        roles=SEND,
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/retry",
        handler=bulk.retry_many,
        body=wire_bulk.ChosenRuns,
        reply=wire_bulk.MatchedRuns,
        roles=SEND,
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{id}",
        handler=runs.show,
        query=runs.WaitQuery,
        reply=messages.RunView,
        roles=SEE,
        waits=True,
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{id}/events",
        handler=events.events,
        reply=messages.EventsReply,
        roles=READ,
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{id}/progress",
        handler=progress.show_progress,
        reply=wire_progress.RunProgress,
        roles=SEE,
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{id}/artifacts",
        handler=downloads.artifacts,
        reply=messages.ArtifactsReply,
        roles=READ,
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{id}/artifacts/{hash}",
        handler=downloads.download,
        lasts=True,
        reply=None,
        media=BYTES,
        roles=READ,
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{id}/cancel",
        handler=runs.cancel,
        reply=messages.Moved,
        roles=SEND,
        refusals=(409,),
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{id}/retry",
        handler=runs.retry,
        reply=messages.Moved,
        roles=SEND,
        refusals=(409,),
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{id}/replay",
        handler=runs.replay,
        reply=messages.Accepted,
        roles=SEND,
        status=201,
        refusals=(409,),
        keyed=True,
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{id}/signal",
        handler=runs.signal,
        body=messages.SignalRun,
        reply=messages.Moved,
        roles=SEND,
        refusals=(409,),
    ),
)

LEASES: Final[Sequence[Endpoint]] = (
    Endpoint(
        method="POST",
        path="/v1/leases",
        handler=leases.claim,
        body=worker.Claim,
        reply=worker.Leases,
        roles=WORK,
        waits=True,
    ),
    Endpoint(
        method="POST",
        path="/v1/leases/renew",
        handler=leases.renew,
        body=worker.Renew,
        reply=worker.RenewReply,
        roles=WORK,
    ),
    Endpoint(
        method="POST",
        path="/v1/leases/finish",
        handler=leases.finish,
        body=worker.Finishes,
        reply=worker.FinishReply,
        roles=WORK,
    ),
    Endpoint(
        method="POST",
        path="/v1/leases/release",
        handler=leases.release,
        body=worker.Release,
        reply=worker.FinishReply,
        roles=WORK,
    ),
    Endpoint(
        method="POST",
        path="/v1/leases/steps",
        handler=steps.steps,
        body=worker.Steps,
        reply=worker.StepsReply,
        roles=WORK,
    ),
    Endpoint(
        method="POST",
        path="/v1/leases/ledgers",
        handler=steps.ledgers,
        body=worker.Ledgers,
        reply=worker.LedgersReply,
        roles=WORK,
    ),
    Endpoint(
        method="POST",
        path="/v1/leases/artifacts",
        handler=uploads.keep,
        body=worker.Keep,
        reply=worker.Kept,
        roles=WORK,
    ),
    Endpoint(
        method="GET",
        path="/v1/leases/artifacts",
        handler=uploads.artifact_terms,
        reply=worker.ArtifactTerms,
        roles=WORK,
    ),
    Endpoint(
        method="PUT",
        path="/v1/leases/{token}/artifacts",
        handler=uploads.upload,
        query=uploads.Upload,
        reply=worker.Kept,
        roles=WORK,
        streams=True,
    ),
    Endpoint(
        method="POST",
        path="/v1/leases/progress",
        handler=progress.report,
        body=wire_progress.Reports,
        reply=wire_progress.ReportReply,
        roles=WORK,
    ),
    Endpoint(
        method="PUT",
        path="/v1/leases/{token}/progress",
        handler=progress.report_one,
        body=wire_progress.Report,
        reply=wire_progress.ReportReply,
        roles=WORK,
    ),
    Endpoint(
        method="POST",
        path="/v1/leases/unfinished",
        handler=leases.unfinished,
        body=worker.Unfinished,
        reply=worker.UnfinishedReply,
        roles=WORK,
    ),
    Endpoint(
        method="GET",
        path="/v1/leases/{token}",
        handler=leases.claimed,
        query=leases.Claimant,
        reply=worker.Leases,
        roles=WORK,
    ),
    Endpoint(
        method="POST",
        path="/v1/provenance",
        handler=leases.provenance,
        body=worker.Provenance,
        reply=worker.ProvenanceReply,
        roles=WORK,
    ),
    Endpoint(
        method="POST",
        path="/v1/workers",
        handler=workers.register,
        body=worker.Register,
        reply=worker.Known,
        roles=WORK,
        status=201,
    ),
    Endpoint(
        method="POST",
        path="/v1/workers/{worker}/heartbeat",
        handler=workers.heartbeat,
        body=worker.Heartbeat,
        reply=worker.Known,
        roles=WORK,
    ),
    Endpoint(
        method="GET",
        path="/v1/workers/{worker}/cancellations",
        handler=workers.wait_for_cancellation,
        query=workers.CancellationQuery,
        reply=worker.CancellationHint,
        roles=WORK,
        waits=True,
    ),
    Endpoint(
        method="DELETE",
        path="/v1/workers/{worker}",
        handler=workers.deregister,
        reply=worker.Known,
        roles=WORK,
    ),
)


def _queue_command(verb: str, handler: RouteHandler, reply: Any, *, body: Any = None) -> Endpoint:
    path = f"/v1/queues/{{name}}/{verb}"
    return Endpoint(
        method="POST", path=path, handler=handler, body=body, reply=reply, roles=("admin",)
    )


LOOKS: Final[Sequence[Endpoint]] = (
    Endpoint(
        method="GET",
        path="/v1/workers",
        handler=workers.workers,
        reply=messages.WorkersReply,
        roles=READ,
    ),
    Endpoint(
        method="GET",
        path="/v1/dead",
        handler=dead.dead,
        query=dead.DeadFilters,
        reply=messages.RunPage,
        roles=READ,
    ),
    Endpoint(
        method="POST",
        path="/v1/dead/requeue",
        handler=dead.requeue,
        body=messages.Ids,
        reply=messages.MovedRuns,
        roles=("admin",),
    ),
    Endpoint(
        method="POST",
        path="/v1/dead/delete",
        handler=dead.delete,
        body=messages.Ids,
        reply=messages.Deleted,
        roles=("admin",),
    ),
    Endpoint(
        method="GET",
        path="/v1/queues",
        handler=queues.queues,
        reply=messages.QueuesReply,
        roles=READ,
    ),
    _queue_command("pause", queues.pause, messages.QueueState),
    _queue_command("resume", queues.resume, messages.QueueState),
    _queue_command(
        "unserved", queues.wait_for_worker, messages.QueuePatience, body=messages.SetUnserved
    ),
    _queue_command("purge", bulk.purge, wire_bulk.MatchedRuns, body=wire_bulk.PurgeQueue),
    _queue_command(
        "retention", queues.set_retention, wire_bulk.QueueKeeps, body=wire_bulk.SetRetention
    ),
    Endpoint(
        method="GET",
        path="/v1/stats",
        handler=stats.stats,
        query=stats.Window,
        reply=messages.StatsReply,
        roles=READ,
    ),
    Endpoint(
        method="GET",
        path="/v1/scale",
        handler=queues.scale,
        query=queues.QueueQuery,
        reply=messages.Scale,
        roles=READ,
    ),
    Endpoint(
        method="GET",
        path="/v1/stream",
        handler=events.stream,
        lasts=True,
        query=events.StreamFilters,
        reply=None,
        media="text/event-stream",
        roles=READ,
        waits=True,
    ),
    Endpoint(
        method="GET",
        path="/metrics",
        handler=metrics.metrics,
        reply=None,
        media="text/plain",
        roles=READ,
    ),
    Endpoint(method="GET", path="/v1/whoami", handler=health.whoami, reply=messages.Whoami),
    Endpoint(
        method="GET", path="/readyz", handler=health.readyz, reply=messages.Health, probe=True
    ),
)

ENDPOINTS: Final[Sequence[Endpoint]] = (*RUNS, *LEASES, *LOOKS)
