# SPDX-License-Identifier: MIT
"""A trace goes on from the enqueue to the handler, and from the handler to what it enqueues."""

import re
import threading
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from byrote.sdk import Client, Context, Handlers, Worker, spans
from byrote.sdk.calls.producer import current_traceparent
from tests.sdk.harness import Service, StartSdkWorker
from tests.support import until


def test_a_trace_goes_from_the_enqueue_to_the_handler(service: Service) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    handlers = Handlers(around=[spans(tracer)])

    @handlers.handle("first")
    def first(_ctx: Context, payload: Any) -> str:
        with Client(service.url, service.token) as client:
            return client.enqueue("second", payload).id

    handlers.handle("second")(lambda ctx, _payload: ctx.traceparent)
    worker = Worker(handlers, service.url, service.token, executor="inline", log_level="error")
    thread = threading.Thread(target=worker.run)
    thread.start()
    until(lambda: worker.ready)
    with tracer.start_as_current_span("checkout") as root:
        sent = service.client.enqueue("first", 1)
    second = service.client.result(sent.id, 20)
    service.client.result(second, 20)
    worker.stop()
    thread.join(15)
    ended = {
        span.attributes.get("byrote.task", span.name): span
        for span in exporter.get_finished_spans()
    }

    assert {span.context.trace_id for span in ended.values()} == {root.get_span_context().trace_id}
    assert ended["first"].parent.span_id == root.get_span_context().span_id
    assert ended["second"].parent.span_id == ended["first"].context.span_id
    assert ended["first"].kind is trace.SpanKind.CONSUMER


def test_a_traceparent_of_the_callers_own_arrives(
    service: Service, start_sdk_worker: StartSdkWorker
) -> None:
    start_sdk_worker(service.url, service.token)
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    run = service.client.enqueue("whoami", 1, traceparent=parent, labels={"a": "b"})
    told = service.client.result(run.id, 20)

    assert (told["trace"], told["labels"]) == (parent, {"a": "b"})


def test_without_a_span_the_trace_is_none() -> None:
    assert current_traceparent() is None
    with TracerProvider().get_tracer("t").start_as_current_span("s"):
        assert re.fullmatch("00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", current_traceparent() or "")
