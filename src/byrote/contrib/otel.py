# SPDX-License-Identifier: MIT
"""OpenTelemetry: a producer span per enqueue, a consumer span per attempt, by `install(app)`.

Names and attributes follow the semantic conventions for messaging (1.44, in development). The span
of an attempt is the root of a new trace with a link to the enqueue, because a run may wait for
hours; with `parent=True` it is a child of the enqueue's span instead.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

from byrote.core.errors import BadOption, Snooze
from byrote.core.spec import Spec
from byrote.executors.hooks.registered import HookDecorators
from byrote.executors.runtime.context import Context
from byrote.executors.runtime.steps.ledger import Suspended

LEAVES = (Snooze, Suspended)
"""Exceptions by which a task waits; they are not errors."""
_replaying: ContextVar[bool] = ContextVar("byrote_otel_replaying", default=False)


class OtelSpans:
    """The hooks of one app; `install` registers them."""

    def __init__(self, provider: Any, *, parent: bool) -> None:
        self._trace = import_module("opentelemetry.trace")
        self._context = import_module("opentelemetry.context")
        self._propagate = import_module("opentelemetry.trace.propagation.tracecontext")
        self._carrier = self._propagate.TraceContextTextMapPropagator()
        self._tracer = self._trace.get_tracer("byrote", tracer_provider=provider)
        self._parent = parent

    def on_enqueue(self, spec: Spec) -> Spec | None:
        """Record the enqueue as a span, and send its context with the run."""
        if _replaying.get() or spec.delivery.traceparent is not None:
            return None
        queue = spec.delivery.queue
        attributes = {
            "messaging.system": "byrote",
            "messaging.operation.name": "enqueue",
            "messaging.operation.type": "send",
            "messaging.destination.name": queue,
            "byrote.task": spec.task,
            "byrote.task.version": spec.version,
            "byrote.spec_hash": spec.digest.hex(),
        }
        kind = self._trace.SpanKind.PRODUCER
        with self._tracer.start_as_current_span(
            f"enqueue {queue}", kind=kind, attributes=attributes
        ):
            carrier: dict[str, str] = {}
            self._carrier.inject(carrier)
        found = carrier.get("traceparent")
        return None if found is None else spec.using(traceparent=found)

    @contextmanager
    def around(self, ctx: Context) -> Iterator[None]:
        """Record the attempt as a span; a verified replay has none."""
        if ctx.replaying:
            token = _replaying.set(True)
            try:
                yield
            finally:
                _replaying.reset(token)
            return
        created = self._created(ctx)
        links = () if created is None or self._parent else (self._trace.Link(created),)
        with self._tracer.start_as_current_span(
            f"process {ctx.queue}",
            context=self._context_of(ctx),
            kind=self._trace.SpanKind.CONSUMER,
            attributes=_attributes(ctx),
            links=links,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except LEAVES:
                span.set_attribute("byrote.outcome", "snoozed")
                raise
            except BaseException as error:
                span.record_exception(error)
                span.set_attribute("error.type", _type(error))
                span.set_attribute("byrote.outcome", "failed")
                span.set_status(self._trace.StatusCode.ERROR, str(error))
                raise
            else:
                span.set_attribute("byrote.outcome", "succeeded")

    def _context_of(self, ctx: Context) -> Any:
        """The context that the attempt's span begins in: a new trace, or that of the enqueue."""
        fresh = self._context.Context()
        if not self._parent or ctx.traceparent is None:
            return fresh
        return self._carrier.extract({"traceparent": ctx.traceparent}, context=fresh)

    def _created(self, ctx: Context) -> Any:
        """The span context of the enqueue; None if the run has none, or an invalid one."""
        if ctx.traceparent is None:
            return None
        fresh = self._context.Context()
        found = self._carrier.extract({"traceparent": ctx.traceparent}, context=fresh)
        context = self._trace.get_current_span(found).get_span_context()
        return context if context.is_valid else None


def install(app: HookDecorators, *, provider: Any = None, parent: bool = False) -> None:
    """Record enqueues and attempts of an app as spans of OpenTelemetry.

    `provider`: the tracer provider; absent: the global one. `parent`: make the span of an attempt
    a child of the enqueue's span, instead of linking it. Raises BadOption if the API is missing.
    """
    try:
        spans = OtelSpans(provider, parent=parent)
    except ImportError:
        raise BadOption("Traces need OpenTelemetry: pip install 'byrote[otel]'.") from None
    app.around(spans.around)
    on_enqueue = getattr(app, "on_enqueue", None)
    if on_enqueue is not None:
        # Handlers of the SDK do not enqueue; its client sends the context of the current span.
        on_enqueue(spans.on_enqueue)
    app.on_hand_stop(flush_of(provider))


def flush_of(provider: Any) -> Any:
    """A hook that exports the spans that wait; a hand ends without Python's exit handlers."""

    def flush() -> None:
        trace = import_module("opentelemetry.trace")
        force = getattr(provider or trace.get_tracer_provider(), "force_flush", None)
        if force is not None:
            force(5_000)

    return flush


def _attributes(ctx: Context) -> dict[str, str | int]:
    return {
        "messaging.system": "byrote",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": ctx.queue,
        "messaging.message.id": ctx.run_id,
        "byrote.task": ctx.task,
        "byrote.attempt": ctx.attempt,
    }


def _type(error: BaseException) -> str:
    cls = type(error)
    return f"{cls.__module__}.{cls.__qualname__}".removeprefix("builtins.")
