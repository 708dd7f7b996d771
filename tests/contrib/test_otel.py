# SPDX-License-Identifier: MIT
"""Spans of enqueues and attempts, by the conventions for messaging."""

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from byrote import App, Retry
from byrote.contrib import otel
from byrote.core.errors import BadOption
from tests.worker.harness import StartWorker, await_end, send, spec

Database = psycopg.Connection[Any]
QUICK = Retry(attempts=3, delay_first="1ms", delay_max="1ms")


@pytest.fixture
def folder(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REPORTS", str(tmp_path))
    monkeypatch.setenv("BYROTE_DATABASE_URL", url)
    return tmp_path


def spans_of(folder: Path, task: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (folder / "spans").read_text().splitlines()]
    return [span for span in found if span["attributes"]["byrote.task"] == task]


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


def test_an_enqueue_is_a_producer_span_whose_context_is_stored(
    app: App, exporter: InMemorySpanExporter, provider: TracerProvider
) -> None:
    otel.install(app, provider=provider)

    @app.task(name="send", queue="mail", version=2)
    def mail() -> None: ...

    with provider.get_tracer("t").start_as_current_span("checkout") as checkout:
        run = mail.enqueue()
    given = mail.using(traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    own = given.enqueue()
    [span, _] = exporter.get_finished_spans()
    context = span.get_span_context()
    assert context is not None
    assert span.attributes is not None

    assert (span.name, span.kind) == ("enqueue mail", SpanKind.PRODUCER)
    assert span.parent is not None
    assert span.parent.span_id == checkout.get_span_context().span_id
    assert span.attributes["messaging.operation.type"] == "send"
    assert span.attributes["messaging.destination.name"] == "mail"
    sent = run.refresh().traceparent or ""
    assert sent.startswith(f"00-{context.trace_id:032x}-{context.span_id:016x}-")
    assert own.refresh().traceparent == given.spec().delivery.traceparent


def test_attempts_are_spans_with_a_link_to_the_enqueue(
    db: Database, start_worker: StartWorker, folder: Path
) -> None:
    worker = start_worker("tests.tasks.reported:app")
    [run] = send(db, spec("parent"))
    [ended] = await_end(db, run)
    await_end(db, ended.result)
    worker.stop()
    [parent] = spans_of(folder, "parent")
    sent, *attempts = sorted(spans_of(folder, "recovers"), key=lambda span: span["start_time"])

    assert (sent["name"], sent["kind"]) == ("enqueue default", "SpanKind.PRODUCER")
    assert sent["parent_id"] == parent["context"]["span_id"]
    assert [span["name"] for span in attempts] == ["process default"] * 3
    assert {span["kind"] for span in attempts} == {"SpanKind.CONSUMER"}
    assert {span["parent_id"] for span in attempts} == {None}
    assert [link["context"]["span_id"] for span in attempts for link in span["links"]] == [
        sent["context"]["span_id"]
    ] * 3
    assert [span["attributes"]["byrote.attempt"] for span in attempts] == [1, 2, 3]
    assert {span["attributes"]["messaging.message.id"] for span in attempts} == {ended.result}
    assert [span["attributes"].get("error.type") for span in attempts] == ["ValueError"] * 2 + [
        None
    ]
    assert [span["status"]["status_code"] for span in attempts] == ["ERROR", "ERROR", "UNSET"]


def test_a_snooze_is_not_an_error_and_a_span_may_have_a_parent(
    db: Database, start_worker: StartWorker, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARENT", "1")
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    worker = start_worker("tests.tasks.reported:app", executor="inline")
    await_end(db, *send(db, spec("snoozes", traceparent=trace)))
    worker.stop()
    spans = sorted(spans_of(folder, "snoozes"), key=lambda span: span["start_time"])

    assert [span["attributes"]["byrote.outcome"] for span in spans] == ["snoozed", "succeeded"]
    assert {span["status"]["status_code"] for span in spans} == {"UNSET"}
    assert {span["parent_id"] for span in spans} == {"0xb7ad6b7169203331"}
    assert {span["context"]["trace_id"] for span in spans} == {f"0x{trace[3:35]}"}


def test_a_missing_api_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(otel, "import_module", missing)
    with pytest.raises(BadOption, match=r"byrote\[otel\]"):
        otel.install(App("postgresql://"))
