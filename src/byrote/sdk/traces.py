# SPDX-License-Identifier: MIT
"""OpenTelemetry, where it is installed: a handler's span continues the trace of its enqueue."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

from byrote.core.errors import BadOption
from byrote.executors.runtime.context import Context


def spans(tracer: Any = None) -> Callable[[Context], AbstractContextManager[Any]]:
    """For `Handlers(around=[spans()])`: each attempt is a span of its producer's trace."""
    try:
        trace = import_module("opentelemetry.trace")
        propagate = import_module("opentelemetry.propagate")
    except ImportError:
        raise BadOption("Traces need OpenTelemetry: pip install byrote[otel].") from None
    tracer = tracer or trace.get_tracer("byrote")

    @contextlib.contextmanager
    def span(ctx: Context) -> Iterator[None]:
        carrier = {} if ctx.traceparent is None else {"traceparent": ctx.traceparent}
        with tracer.start_as_current_span(
            f"process {ctx.queue}",
            context=propagate.extract(carrier),
            kind=trace.SpanKind.CONSUMER,
            attributes={
                "messaging.system": "byrote",
                "messaging.operation.type": "process",
                "messaging.destination.name": ctx.queue,
                "messaging.message.id": ctx.run_id,
                "byrote.task": ctx.task,
                "byrote.attempt": ctx.attempt,
            },
        ):
            yield

    return span
