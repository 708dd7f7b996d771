# SPDX-License-Identifier: MIT
"""Requests of a worker to the service; all of them are safe to send twice."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from byrote.artifacts.content_store import pieces
from byrote.core.artifact import POSTGRES
from byrote.core.outcome import Crashed, Failed, Outcome, Succeeded
from byrote.core.policy import (
    Cancel,
    Release,
    RetryIn,
    SnoozeFor,
    Succeed,
    Verdict,
)
from byrote.core.ports.replies import LOCKED, ArtifactReply, RecordedStep, Remainder, StepReply
from byrote.core.ports.store import ClaimRequest
from byrote.core.run import Leased
from byrote.core.verdict import LETTER_OF_ACCEPTED, LETTERS, WORDS, Judged, usage_of
from byrote.sdk.calls.replies import LeaseRead, LeasesRead, given, text_of
from byrote.sdk.transport.request import ServiceCall
from byrote.wire.leases import (
    ArtifactTerms,
    CancellationHint,
    FinishReply,
    Kept,
    Known,
    LedgersReply,
    ProvenanceReply,
    RenewReply,
    StepsReply,
    UnfinishedReply,
)
from byrote.wire.progress import ReportReply

_encode = msgspec.json.encode

_SUCCEED = {"kind": WORDS[Succeed]}

_leases = msgspec.json.Decoder(LeasesRead).decode
_renewed = msgspec.json.Decoder(RenewReply).decode
_finished = msgspec.json.Decoder(FinishReply).decode
_noted = msgspec.json.Decoder(StepsReply).decode
_ledgers = msgspec.json.Decoder(LedgersReply).decode
_kept = msgspec.json.Decoder(Kept).decode
_NEVER = datetime.min.replace(tzinfo=UTC)
_known = msgspec.json.Decoder(Known).decode
_number = msgspec.json.Decoder(ProvenanceReply).decode
_unfinished = msgspec.json.Decoder(UnfinishedReply).decode
_reported = msgspec.json.Decoder(ReportReply).decode
_hint = msgspec.json.Decoder(CancellationHint).decode
_limit = msgspec.json.Decoder(ArtifactTerms).decode


def claim(wanted: ClaimRequest, *, wait_s: float = 0.0) -> ServiceCall[list[Leased]]:
    """Lease the requested runs; the service waits up to `wait_s` for one."""
    body: dict[str, Any] = {
        "worker": wanted.worker,
        "tasks": wanted.tasks,
        "queues": wanted.quotas,
        "lease_for_s": wanted.lease_for.total_seconds(),
        "token": wanted.token,
    }
    if wait_s > 0:
        body["wait_s"] = wait_s
    if wanted.floors:
        body["floors"] = wanted.floors
    return ServiceCall("POST", "/v1/leases", _reader(wanted), body=_encode(body), wait_s=wait_s)


def claimed(wanted: ClaimRequest) -> ServiceCall[list[Leased]]:
    """Return the leases of a claim whose answer was lost."""
    path = f"/v1/leases/{wanted.token}"
    return ServiceCall("GET", path, _reader(wanted), query={"worker": wanted.worker})


def _reader(wanted: ClaimRequest) -> Callable[[bytes], list[Leased]]:
    def read(body: bytes) -> list[Leased]:
        return [leased_of(lease, wanted) for lease in _leases(body).leases]

    return read


def leased_of(lease: LeaseRead, wanted: ClaimRequest) -> Leased:
    """A lease as the worker's parts know it."""
    return Leased(
        lease.run,
        lease.queue,
        lease.task,
        lease.version,
        bytes(lease.spec).decode(),
        lease.attempt,
        lease.charged,
        lease.losses,
        lease.max_attempts,
        lease.timeout_ms,
        text_of(lease.retry),
        text_of(lease.labels),
        lease.traceparent,
        bytes.fromhex(lease.spec_hash),
        lease.rank,
        lease.age_us,
        lease.as_of_us,
        lease.token,
        wanted.deadline,
        wanted.claimed_at,
    )


def renew(leases: Sequence[Leased], *, lease_for: timedelta) -> ServiceCall[dict[str, bool | str]]:
    """Extend leases: ids still held and whether cancellation was requested, or LOCKED."""
    body = {"leases": _held(leases), "lease_for_s": lease_for.total_seconds()}
    return ServiceCall(
        "POST",
        "/v1/leases/renew",
        _renewals,
        body=_encode(body),
    )


def _renewals(received: bytes) -> dict[str, bool | str]:
    reply = _renewed(received)
    return {row.run: row.cancel for row in reply.renewed} | dict.fromkeys(
        reply.locked or (), LOCKED
    )


def _held(leases: Sequence[Leased]) -> list[dict[str, str]]:
    return [{"run": lease.id, "token": lease.token} for lease in leases]


def finish(judged: Sequence[Judged]) -> ServiceCall[dict[str, str]]:
    """Settle attempts: the accepted ids and their code letters, or LOCKED."""

    def read(body: bytes) -> dict[str, str]:
        # `already`: an earlier copy of this report was accepted, with the same verdict.
        own = {run.id: LETTERS[type(verdict)] for run, _, verdict in judged}
        reply = _finished(body)
        accepted = {
            row.run: LETTER_OF_ACCEPTED.get(row.accepted_as, own[row.run]) for row in reply.accepted
        }
        return accepted | dict.fromkeys(reply.locked or (), LOCKED)

    body = _encode([finish_of(*entry) for entry in judged])
    return ServiceCall("POST", "/v1/leases/finish", read, body=body)


def finish_of(run: Leased, outcome: Outcome, verdict: Verdict) -> dict[str, Any]:
    """A judged attempt as the wire has it (`byrote.wire.leases.Finish`)."""
    fields: dict[str, Any] = {"run": run.id, "token": run.token}
    if type(outcome) is Succeeded:
        fields["result"], fields["verdict"] = msgspec.Raw(outcome.text.encode()), _SUCCEED
    else:
        fields |= _trouble_of(outcome, verdict)
    if outcome.output is not None:
        fields["output"] = outcome.output
    if (usage := usage_of(run, outcome)) is not None:
        fields["usage"] = usage
    if run.provenance is not None:
        fields["provenance"] = run.provenance.id
    return fields


def _trouble_of(outcome: Outcome, verdict: Verdict) -> dict[str, Any]:
    word: dict[str, Any] = {"kind": WORDS[type(verdict)]}
    fields: dict[str, Any] = {"verdict": word}
    if isinstance(verdict, RetryIn | SnoozeFor):
        word["delay_us"] = verdict.delay // timedelta(microseconds=1)
    match outcome:
        case Failed(fault=fault) | Crashed(fault=fault):
            disrupted = {"disrupted": True} if type(outcome) is Crashed else {}
            fields["error"] = msgspec.to_builtins(fault) | disrupted
    match verdict:
        case SnoozeFor(delay=delay, wait=wait, event=event):
            fields["snooze"] = {"after": delay.total_seconds(), "wait": wait, "event": event}
        case Cancel():
            fields["cancelled"] = True
        case Release():
            fields["released"] = True
    return fields


def release(leases: Sequence[Leased]) -> ServiceCall[bool]:
    """Release leases at once; the attempts do not count."""
    body = _encode({"leases": _held(leases)})
    return ServiceCall("POST", "/v1/leases/release", lambda _received: True, body=body)


def number(digest: str, doc: str) -> ServiceCall[int]:
    """The number of an environment that executes attempts."""
    body = _encode({"digest": digest, "doc": msgspec.Raw(doc.encode())})
    return ServiceCall("POST", "/v1/provenance", lambda received: _number(received).id, body=body)


def register(description: Mapping[str, Any]) -> ServiceCall[list[str]]:
    """Announce a worker; returns its aliases that are tasks of other live workers."""
    body = _encode(description)
    return ServiceCall("POST", "/v1/workers", lambda got: _known(got).contested or [], body=body)


def heartbeat(worker: str, load: Mapping[str, Any]) -> ServiceCall[list[str] | None]:
    """Send a heartbeat; returns what `register` does, None if the worker is unknown."""
    path = f"/v1/workers/{quote(worker, safe='')}/heartbeat"

    def read(received: bytes) -> list[str] | None:
        reply = _known(received)
        return (reply.contested or []) if reply.known else None

    return ServiceCall("POST", path, read, body=_encode(load))


def deregister(worker: str) -> ServiceCall[bool]:
    """Take a worker off the list."""
    return ServiceCall("DELETE", f"/v1/workers/{quote(worker, safe='')}", lambda _received: True)


def unfinished(*, queues: Sequence[str], tasks: Sequence[str]) -> ServiceCall[Remainder]:
    """Return the number of runs left in these queues."""

    def read(body: bytes) -> Remainder:
        reply = _unfinished(body)
        counts = reply.elsewhere, reply.unknown, reply.paused, reply.later
        return Remainder(reply.unfinished, *counts)

    body = _encode({"queues": queues, "tasks": tasks})
    return ServiceCall("POST", "/v1/leases/unfinished", read, body=body)


def ledgers(leases: Sequence[Leased]) -> ServiceCall[list[RecordedStep]]:
    """The ledgers of these runs, each in order."""

    def read(received: bytes) -> list[RecordedStep]:
        return [
            RecordedStep(
                step.run,
                step.sequence,
                step.kind,
                step.name,
                step.open,
                given(step.result),
                step.place,
                step.args_hash,
            )
            for step in _ledgers(received).entries
        ]

    return ServiceCall("POST", "/v1/leases/ledgers", read, body=_encode({"leases": _held(leases)}))


def note(steps: Sequence[Mapping[str, Any]]) -> ServiceCall[tuple[list[StepReply], list[str]]]:
    """Write steps under their leases; also returns the runs whose rows are locked."""

    def read(received: bytes) -> tuple[list[StepReply], list[str]]:
        reply = _noted(received)
        noted = [
            StepReply(step.run, step.sequence, step.open, given(step.result), step.left_us)
            for step in reply.steps
        ]
        return noted, reply.locked or []

    body = _encode({"steps": [_step(step) for step in steps]})
    return ServiceCall("POST", "/v1/leases/steps", read, body=body)


def keep(lease: Leased, artifact: Mapping[str, Any]) -> ServiceCall[ArtifactReply]:
    """Store a small artifact under a lease."""
    body = {name: artifact[name] for name in ("name", "media_type", "data")}

    def read(received: bytes) -> ArtifactReply:
        kept = _kept(received)
        return ArtifactReply(kept.verdict, kept.media_type or "", POSTGRES, kept.at or _NEVER)

    sent = _encode({"run": lease.id, "token": lease.token, **body})
    return ServiceCall("POST", "/v1/leases/artifacts", read, body=sent)


def _step(step: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: step[name] for name in ("token", "sequence", "kind", "name")}
    fields["run"] = step["id"]
    if step.get("result") is not None:
        fields["result"] = msgspec.Raw(step["result"].encode())
    for name in ("delay_us", "place", "args_hash"):
        if step.get(name) is not None:
            fields[name] = step[name]
    return fields


def progress(reports: Sequence[Mapping[str, Any]]) -> ServiceCall[tuple[list[str], list[str]]]:
    """Write the progress of attempts; returns the runs it was written for, and locked ones."""

    def read(received: bytes) -> tuple[list[str], list[str]]:
        reply = _reported(received)
        return reply.accepted, reply.locked or []

    body = _encode({"reports": [_report(report) for report in reports]})
    return ServiceCall("POST", "/v1/leases/progress", read, body=body)


def _report(report: Mapping[str, Any]) -> dict[str, Any]:
    fields = {"run": report["id"], "token": report["token"], "message": report["message"]}
    if report["total"] is None:
        fields["done"] = report["percent"]
    else:
        fields |= {"done": report["done"], "total": report["total"]}
    if report["data"] is not None:
        fields["data"] = msgspec.Raw(report["data"].encode())
    return fields


def cancellation_hint(worker: str, *, wait_s: float) -> ServiceCall[bool]:
    """Returns whether a run of this worker was cancelled; the service waits up to `wait_s`."""
    path = f"/v1/workers/{quote(worker, safe='')}/cancellations"
    query = {"wait": f"{wait_s:g}s"}
    return ServiceCall(
        "GET", path, lambda received: _hint(received).called, query=query, wait_s=wait_s
    )


def artifact_limit() -> ServiceCall[int]:
    """The maximum size of an artifact at the service."""
    return ServiceCall("GET", "/v1/leases/artifacts", lambda received: _limit(received).size_max)


def send(lease: Leased, artifact: Mapping[str, Any]) -> ServiceCall[ArtifactReply]:
    """Store a large artifact under a lease, from a file; `location` is its path."""
    path = Path(artifact["location"])
    query = {"run": lease.id, "sha256": artifact["digest"].hex()}
    query |= {name: artifact[name] for name in ("name", "media_type")}
    return ServiceCall(
        "PUT",
        f"/v1/leases/{lease.token}/artifacts",
        _keeping,
        query=query,
        body=lambda: pieces(path),
    )


def _keeping(received: bytes) -> ArtifactReply:
    kept = _kept(received)
    return ArtifactReply(kept.verdict, kept.media_type or "", "service", kept.at or _NEVER)
