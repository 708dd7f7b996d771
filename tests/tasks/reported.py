# SPDX-License-Identifier: MIT
"""An app that reports to Sentry and OpenTelemetry; both write files into REPORTS."""

import json
import logging
import os
from pathlib import Path
from typing import Any

import sentry_sdk
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from sentry_sdk.transport import Transport

from byrote import App, Context, Retry, Snooze
from byrote.contrib import otel, sentry

FOLDER = Path(os.environ["REPORTS"])
QUICK = Retry(attempts=3, delay_first="1ms", delay_max="1ms")


def write(name: str, document: str) -> None:
    fd = os.open(FOLDER / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, document.replace("\n", " ").encode() + b"\n")
    os.close(fd)


class FileTransport(Transport):
    """Writes events to a file when they are flushed, as a transport with a queue would."""

    def __init__(self, options: Any = None) -> None:
        super().__init__(options)
        self._queued: list[str] = []

    def capture_envelope(self, envelope: Any) -> None:
        if (event := envelope.get_event()) is not None:
            self._queued.append(json.dumps(event, default=str))

    def flush(self, timeout: float, callback: Any = None) -> None:  # noqa: ARG002 -- the base's.
        while self._queued:
            write("sentry", self._queued.pop(0))


class FileExporter(SpanExporter):
    def export(self, spans: Any) -> SpanExportResult:
        for span in spans:
            write("spans", span.to_json())
        return SpanExportResult.SUCCESS


def provider() -> TracerProvider:
    made = TracerProvider()
    made.add_span_processor(BatchSpanProcessor(FileExporter(), schedule_delay_millis=60_000))
    return made


app = App()
spans = provider()
sentry_sdk.init(dsn="http://key@127.0.0.1:1/1", transport=FileTransport, traces_sample_rate=0)
sentry.install(app)
otel.install(app, provider=spans, parent="PARENT" in os.environ)


@app.task(name="dead", retry=QUICK)
def dead(word: str) -> None:
    sentry_sdk.set_tag("own", word)
    raise ValueError(f"{word} failed")


@app.task(name="adead", retry=QUICK)
async def adead(word: str) -> None:
    sentry_sdk.add_breadcrumb(message=f"crumb of {word}")
    raise LookupError(f"{word} failed")


@app.task(name="recovers", retry=QUICK)
def recovers(ctx: Context) -> int:
    if ctx.attempt < 3:
        raise ValueError("not yet")
    return ctx.attempt


@app.task(name="logs")
def logs() -> None:
    logging.getLogger("shop").error("the task itself logs")


@app.task(name="dies")
def dies() -> None:
    os._exit(1)


@app.task(name="parent")
def parent() -> str:
    return recovers.enqueue().id


@app.task(name="snoozes")
def snoozes(ctx: Context) -> None:
    if ctx.attempt == 1:
        raise Snooze("1ms")
