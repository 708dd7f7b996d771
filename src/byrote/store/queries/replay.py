# SPDX-License-Identifier: MIT
"""Queries of replays and of provenance."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from byrote.core.spec import Spec
from byrote.store import rows
from byrote.store.query import Query, Resend


def replay(*, original: str, id: str) -> Query[str]:  # noqa: A002 -- the column's name.
    """Enqueue an earlier run's spec again as a new run."""
    args = {"original": original, "id": id}
    return Query("replay", args, lambda row: str(row[0]), Resend.ONCE)


def latest_by_hash(spec_hash: str, *, ended: bool = False) -> Query[str]:
    """The newest run with this spec hash, or the newest of those that ended by themselves."""
    return Query("latest_by_hash", {"hash": spec_hash, "ended": ended}, lambda row: str(row[0]))


def register_provenance(*, digest: str, doc: str) -> Query[int]:
    """Return the number of an environment; the same environment has the same one."""
    args = {"hash": digest, "doc": doc}
    return Query("register_provenance", args, lambda row: int(row[0]))


def provenances(ids: Sequence[int]) -> Query[rows.Environment]:
    """The environments with these numbers."""
    return Query("provenances", {"ids": list(ids)}, rows.environment_from)


_MILLIS_MAX = 250_000_000_000_000
"""Later times exceed the year 9999, the last of a datetime."""


def shadow(pairs: Sequence[tuple[str, str]], *, queue: str) -> Query[str]:
    """Enqueue runs again as shadow runs: pairs of a new id and the id of the original."""
    ids, originals = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    args = {"ids": ids, "originals": originals, "queue": queue}
    return Query("shadow", args, lambda row: str(row[0]), Resend.ONCE)


def replays(run_id: str, *, limit: int = 100) -> Query[rows.ReplayRow]:
    """Runs that replay a run, oldest first."""
    return Query("replays", {"id": run_id, "limit": limit}, lambda row: rows.ReplayRow(*row))


def originals(
    task: str,
    *,
    limit: int,
    since: datetime | timedelta | None = None,
    failed: bool = False,
    version: int | None = None,
    labels: Mapping[str, str] | None = None,
) -> Query[str]:
    """The newest runs of a task that ended by themselves, since a moment or a time ago."""
    args = {
        "version": version,
        "labels": None if not labels else msgspec.json.encode(labels).decode(),
        "task": task,
        "limit": limit,
        "failed": failed,
        "since": since if isinstance(since, datetime) else None,
        "ago": since if isinstance(since, timedelta) else None,
    }
    return Query("originals", args, lambda row: str(row[0]))


def once_keys(run_id: str) -> Query[str]:
    """The keys of the effects a run has marked as done."""
    return Query("once_keys", {"id": run_id}, lambda row: str(row[0]))


def is_logged(run_id: str) -> Query[bool]:
    """Whether a run that was deleted is still in the event log."""
    digits = run_id.replace("-", "")
    # Only these ids (UUIDv7) contain the time they were made.
    millis = int(digits[:12], 16) if digits[12] == "7" else 0
    around = datetime.fromtimestamp(min(millis, _MILLIS_MAX) / 1000, UTC)
    return Query("is_logged", {"id": run_id, "around": around}, lambda row: bool(row[0]))


def enqueue_verification(run_id: str, spec: Spec, *, original: str) -> Query[str]:
    """Enqueue a run that verifies another, once; no row if that one has not ended by itself."""
    args = {
        "id": run_id,
        "original": original,
        "queue": spec.delivery.queue,
        "task": spec.task,
        "version": spec.version,
        "spec": spec.text,
        "hash": spec.digest,
    }
    return Query("enqueue_verification", args, lambda row: str(row[0]))
