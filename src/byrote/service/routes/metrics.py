# SPDX-License-Identifier: MIT
"""`/metrics`: queues and this process, in the format of Prometheus."""

from collections.abc import Iterable, Mapping, Sequence

from starlette.responses import Response

from byrote.service.http.request import RequestContext
from byrote.store import queries
from byrote.store.rows import QueueRow

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

type Sample = tuple[Mapping[str, str], float]


async def metrics(call: RequestContext) -> Response:
    """Depths of queues, workers, and the requests of this process."""
    reads, service, grant = call.service.reads, call.service, call.grant
    depths = await reads.all(queries.depths(queues=grant.queues, tasks=grant.tasks))
    workers = [
        row
        for row in await reads.all(queries.workers())
        if row.alive and row.tasks and grant.serves(row.queues, row.tasks)
    ]
    text = "".join(
        [
            *_depths(depths),
            _gauge("byrote_workers", "Workers with a recent heartbeat.", [({}, len(workers))]),
            _gauge(
                "byrote_service_requests", "Requests under way here.", [({}, service.requests.used)]
            ),
            _gauge(
                "byrote_service_waiting",
                "Requests that wait here for something to happen.",
                [
                    ({"for": "claim"}, service.claim_waiters.waiting),
                    ({"for": "end"}, service.watch.waiting),
                    ({"for": "call"}, service.calling.waiting),
                    ({"for": "stream"}, service.streams.used),
                ],
            ),
        ]
    )
    return Response(text, media_type=MEDIA_TYPE)


def _depths(rows: Sequence[QueueRow]) -> list[str]:
    runs = [
        ({"queue": row.queue, "status": status}, float(getattr(row, status)))
        for row in rows
        for status in ("ready", "waiting", "running", "dead")
    ]
    ages = [({"queue": row.queue}, row.oldest_ready_s or 0.0) for row in rows]
    kept = [({"queue": row.queue}, float(row.depth)) for row in rows if row.depth is not None]
    paused = [({"queue": row.queue}, float(row.paused_at is not None)) for row in rows]
    most = f"{queries.DEPTH_MAX:,}"
    return [
        _gauge("byrote_queue_runs", f"Runs in a queue, counted up to {most}.", runs),
        _gauge("byrote_queue_depth", "Runs accepted and not begun, ready or waiting.", kept),
        _gauge("byrote_queue_oldest_ready_seconds", "How long the next run has been due.", ages),
        _gauge("byrote_queue_paused", "Whether a queue is paused.", paused),
    ]


def _gauge(name: str, about: str, samples: Iterable[Sample]) -> str:
    lines = [f"# HELP {name} {about}\n# TYPE {name} gauge\n"]
    for labels, value in samples:
        # Names of queues contain nothing that needs escaping.
        pairs = ",".join(f'{key}="{text}"' for key, text in labels.items())
        lines.append(f"{name}{{{pairs}}} {value:.15g}\n" if pairs else f"{name} {value:.15g}\n")
    return "".join(lines)
