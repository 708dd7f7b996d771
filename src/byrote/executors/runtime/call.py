# SPDX-License-Identifier: MIT
"""One attempt: find the task, read its arguments, call it, and turn the outcome into a result.

`outcome_of` turns the result into an outcome on the supervisor's side; `runtime/job.py` describes
both.
"""

import asyncio
import traceback
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, assert_never

import msgspec

from byrote.core.duration import micros
from byrote.core.errors import (
    BadPayload,
    Fatal,
    LeaseLost,
    NonDeterminism,
    NotRecorded,
    RetryLater,
    Snooze,
)
from byrote.core.json.codec import PAYLOAD_MAX, pack, unpack
from byrote.core.outcome import (
    TRACEBACK_MAX,
    Cancelled,
    Crashed,
    Failed,
    Fault,
    Outcome,
    Released,
    Snoozed,
    Succeeded,
    safe_text,
)
from byrote.core.replay.withholding import Withholding, open_withholding
from byrote.core.task import Registry, Task
from byrote.core.typed.converter import Converter
from byrote.executors.runtime import usage as meter
from byrote.executors.runtime.asks import AskClient
from byrote.executors.runtime.context import Context
from byrote.executors.runtime.job import (
    CancelledResult,
    CrashedResult,
    DeclinedResult,
    Job,
    RaisedResult,
    ReleasedResult,
    Result,
    ReturnedResult,
    SnoozedResult,
)
from byrote.executors.runtime.output import current_scope
from byrote.executors.runtime.steps.branches import open_branches
from byrote.executors.runtime.steps.callers import AsyncSteps, SyncSteps
from byrote.executors.runtime.steps.ledger import StepSource, Suspended


class Decided(Exception):
    """An attempt's error, and the verdict that the process which caught it decided on."""

    def __init__(self, error: BaseException, after: timedelta | None, *, final: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.after = after
        self.final = final


class Disruption(Exception):
    """An attempt that a cause outside of the task ended, such as a server that went away."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


WITHHELD = "replay.withheld"
"""Reports a call that a replay made without effect."""
CALLERS = (
    "byrote.executors.",
    "byrote.django.worker.attempt",
    "byrote.testing.",
    "asgiref.",
)
"""Modules whose frames come before a task's own."""
_NONE = pack(None)
_NONE_DIGEST = _NONE.digest.hex()


def prepare(
    registry: Registry, job: Job, ask_client: AskClient | None = None
) -> tuple[Task, list[Any], dict[str, Any], StepSource | None]:
    """The task of a job, its arguments, and the ledger that it must reach the end of."""
    task = registry.find(job.task, job.version)
    spec = unpack(job.spec_json)
    args, kwargs = spec["args"], spec["kwargs"]
    if task.arguments is not None:
        args, kwargs = task.arguments.load(args, kwargs)
    steps = None
    digest = _spec_digest(job) if task.seed == "spec" else None
    if ask_client is not None and ask_client.replay is not None:
        open_withholding(Withholding(job.id, partial(_report, ask_client, job)))
    if task.takes_context:
        context = Context.of(job, ask_client, digest=digest)
        if ask_client is not None:
            context.root = open_branches()
        args.insert(0, context)
        steps = context.unsettled
    elif ask_client is not None and ask_client.replay is not None:
        # This task has no steps; the run it repeats may have had some.
        steps = Context.of(job, ask_client).unsettled
    return task, args, kwargs, steps


def _report(ask_client: AskClient, job: Job, *what: Any) -> None:
    """Have the verdict list a call that a replay made without effect."""
    withheld = dict(zip(("call", "what", "count"), what, strict=True))
    ask_client.put(job.slot, WITHHELD, {"run": job.id, "attempt": job.attempt, **withheld})


def _spec_digest(job: Job) -> bytes:
    scope = current_scope()
    if scope is not None:
        scope.digest = job.spec_hash
    return job.spec_hash


def call_sync(registry: Registry, job: Job, ask_client: AskClient | None = None) -> Result:
    """Run one attempt of a sync task in this thread."""
    steps, ctx = None, None
    try:
        task, args, kwargs, steps = prepare(registry, job, ask_client)
        ctx = args[0] if task.takes_context else None
        begun = meter.begin()
        try:
            value = task.function(*args, **kwargs)
        finally:
            meter.end(begun)
        if steps is None and ctx is not None:
            steps = ctx.opened
        if steps is not None:
            SyncSteps(steps).close()
        result = returned(job.slot, value, task.result)
    except BaseException as error:  # noqa: BLE001 -- whatever a task raises is its outcome, sys.exit included.
        result = _broken_off(job.slot, error, steps)
    if ctx is not None and ctx.reports is not None:
        ctx.reports.send_last()
    return result


async def call_async(registry: Registry, job: Job, ask_client: AskClient | None = None) -> Result:
    """Run one attempt of an async task on this loop."""
    steps, ctx = None, None
    try:
        task, args, kwargs, steps = prepare(registry, job, ask_client)
        ctx = args[0] if task.takes_context else None
        value = await task.function(*args, **kwargs)
        if steps is None and ctx is not None:
            steps = ctx.opened
        if steps is not None:
            await AsyncSteps(steps).close()
        result = returned(job.slot, value, task.result)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 -- whatever a task raises is its outcome, sys.exit included.
        result = _broken_off(job.slot, error, steps)
    if ctx is not None and ctx.reports is not None:
        await ctx.reports.asend_last()
    return result


def _broken_off(slot: int, error: BaseException, steps: StepSource | None) -> Result:
    """The result of a task that raised, with how far it followed its ledger, if it has one."""
    if steps is not None and steps.strayed is not None:
        error = steps.strayed
    result = raised(slot, error)
    if isinstance(result, RaisedResult):
        keep_error(error)
        if steps is not None and steps.met is not None:
            result.fault = msgspec.structs.replace(result.fault, met=steps.met)
    return result


def keep_error(error: BaseException) -> None:
    """Store the exception that ended the attempt, for the log."""
    scope = current_scope()
    if scope is not None:
        scope.error = error.error if isinstance(error, Decided) else error


def returned(slot: int, value: object, converter: Converter | None = None) -> Result:
    """The result of a task that returned; a value that cannot be stored is a `bad_result`."""
    if value is None and converter is None:
        return ReturnedResult(slot, _NONE.text, _NONE_DIGEST)
    try:
        if converter is not None:
            value = converter.dump(value)
        packed = pack(value, limit=PAYLOAD_MAX)
    except BadPayload as error:
        message = f"The task returned a value that cannot be stored: {error}"
        fault = Fault("bad_result", "byrote.BadPayload", safe_text(message))
        return RaisedResult(slot, fault)
    return ReturnedResult(slot, packed.text, packed.digest.hex())


def raised(  # noqa: PLR0911 -- one return per way to end.
    slot: int, error: BaseException
) -> Result:
    """The result of a task that raised: our exceptions decide it, for others the policy does."""
    match error:
        case Decided():
            delay = None if error.after is None else micros(error.after)
            return RaisedResult(slot, fault_of(error.error), delay, error.final)
        case Disruption():
            return CrashedResult(slot, fault_of(error.error))
        case Snooze():
            return SnoozedResult(slot, micros(error.after))
        case RetryLater(after=after):
            delay = None if after is None else micros(after)
            return RaisedResult(slot, fault_of(error), delay)
        case Fatal():
            return RaisedResult(slot, fault_of(error), final=True)
        case Suspended():
            return SnoozedResult(slot, micros(error.after), error.wait, error.event)
        case BaseExceptionGroup() if waiting := error.subgroup(Suspended):
            # A task group wraps whatever its tasks raise.
            return raised(slot, _first(waiting))
        case NonDeterminism() | NotRecorded():
            return RaisedResult(slot, fault_of(error, error.code), final=True)
        case LeaseLost():
            # The store would reject any outcome; send the cheapest.
            return ReleasedResult(slot)
        case _:
            return RaisedResult(slot, fault_of(error))


def _first(group: BaseExceptionGroup[Any]) -> BaseException:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


def fault_of(error: BaseException, kind: str = "raised") -> Fault:
    """An exception as plain data: class path, message, traceback without locals or our frames."""
    cls = type(error)
    frames = traceback.format_exception(cls, error, theirs(error.__traceback__))
    try:
        message = str(error)
    except BaseException as odd:  # noqa: BLE001 -- whatever str() raises must not take the hand down.
        message = f"(its str() raised {type(odd).__name__})"
    return Fault(
        kind,
        safe_text(f"{cls.__module__}.{cls.__qualname__}".removeprefix("builtins."), 200),
        safe_text(message),
        safe_text("".join(frames)[-TRACEBACK_MAX:], TRACEBACK_MAX),
    )


def theirs(trace: TracebackType | None) -> TracebackType | None:
    """A traceback from the first frame of the task on."""
    while trace is not None and trace.tb_next is not None and _is_ours(trace):
        trace = trace.tb_next
    return trace


def _is_ours(trace: TracebackType) -> bool:
    return str(trace.tb_frame.f_globals.get("__name__")).startswith(CALLERS)


def timed_out(slot: int, limit_ms: int) -> RaisedResult:
    """The result of an attempt that ran past its timeout and could be stopped."""
    return RaisedResult(slot, timeout_fault(limit_ms, 0, ""))


def timeout_fault(limit_ms: int, attempt: int, worker: str) -> Fault:
    """Return the fault of an attempt that exceeded its timeout."""
    message = f"The attempt ran longer than its timeout of {limit_ms / 1000:g} s."
    return Fault("timeout", "TimedOut", message, attempt=attempt, worker=worker)


def outcome_of(result: Result, attempt: int, worker: str) -> Outcome:
    """The outcome of an attempt, on the supervisor's side; raises one of `messages.GARBLED`."""
    output, usage = result.output, result.usage
    match result:
        case ReturnedResult():
            return Succeeded(result.text, result.digest, output, usage)
        case RaisedResult():
            fault = msgspec.structs.replace(result.fault, attempt=attempt, worker=worker)
            after = None if result.after_us is None else timedelta(microseconds=result.after_us)
            return Failed(fault, after=after, final=result.final, output=output, usage=usage)
        case SnoozedResult():
            after = timedelta(microseconds=result.after_us)
            return Snoozed(after, output, usage, result.wait, result.event)
        case CancelledResult():
            return Cancelled(output, usage)
        case ReleasedResult():
            return Released(output, usage)
        case CrashedResult():
            fault = msgspec.structs.replace(result.fault, attempt=attempt, worker=worker)
            return Crashed(fault, output, usage)
        case DeclinedResult():
            raise ValueError("A declined attempt has no outcome.")
        case _:
            assert_never(result)
