# SPDX-License-Identifier: MIT
"""Turns events into log lines: text for people, JSON for machines. Payloads never get this far.

A busy worker emits tens of thousands of events a second, so whole batches are encoded at once and
written in one go, beside the standard logging module, which is for everything else.
"""

import json
import logging
import textwrap
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

import msgspec

from byrote.core.events import Event, is_trouble
from byrote.core.text.printable import json_printable, one_line, printable

type Format = Literal["text", "json"]
type Now = Callable[[], datetime]

_encode_lines = msgspec.json.Encoder().encode_lines

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class LogWriter:
    """Writes events to a stream, each once, whole lines only."""

    def __init__(self, stream: TextIO, *, form: Format, level: str, now: Now) -> None:
        self._stream = stream
        self._form = form
        self._now = now
        self._quiet = LEVELS[level] > LEVELS["info"]
        self._silent = LEVELS[level] > LEVELS["warning"]
        self._lock = threading.Lock()

    def __call__(self, events: Sequence[Event]) -> None:
        """Write these events, if their level is asked for."""
        if self._quiet:
            events = [] if self._silent else [event for event in events if is_trouble(event)]
        if not events:
            return
        at = self._now().isoformat(timespec="milliseconds")
        if self._form == "json":
            lines = json_lines(at, events)
        else:
            lines = "".join([text_line(at, event) for event in events])
        with self._lock:
            self._stream.write(lines)
            self._stream.flush()


def json_lines(at: str, events: Sequence[Event]) -> str:
    """Events as machines read them, a line each."""
    # No line break stands inside an object, so each of these begins one.
    objects = b"\n" + _encode_lines(events)
    return json_printable(f'\n{{"at":"{at}",'.join(objects.decode().split("\n{"))[1:])


def text_line(at: str, event: Event) -> str:
    """One event as a person reads it."""
    fields = msgspec.structs.asdict(event)
    shown = " ".join(f"{name}={_plain(value)}" for name, value in fields.items() if value != "")
    mark = "!" if is_trouble(event) else " "
    return f"{at[11:23]} {mark} {type(event).__name__:<14} {shown}\n"


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    text = one_line(str(value))
    return json.dumps(text, ensure_ascii=False) if " " in text else text


class JsonFormatter(logging.Formatter):
    """The standard logging module's records, in the same form as the events."""

    def format(self, record: logging.LogRecord) -> str:
        """One JSON object per record."""
        extra: Mapping[str, Any] = getattr(record, "byrote", {})
        at = datetime.fromtimestamp(record.created, UTC)
        line = {
            "at": at.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **extra,
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json_printable(msgspec.json.encode(line).decode())


class TextFormatter(logging.Formatter):
    """The same records as a person reads them: nothing that is quoted can begin a line."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s   %(levelname)-7s %(name)s: %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 -- logging's name.
        """The line itself."""
        record.message = one_line(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 -- logging's name.
        """A traceback, indented: the text of an error may contain line breaks."""
        return textwrap.indent(printable(super().formatException(ei)), "    ")


class LogHandler(logging.StreamHandler[TextIO]):
    """The handler of the standard logging module's records that Byrote installs."""


def set_up_logging(form: str, level: str) -> None:
    """Send the standard logging module's records to standard error in the chosen form."""
    handler = LogHandler()
    # Not only on the root: a logger with its own level, as in Django, ignores the root's level.
    handler.setLevel(LEVELS[level])
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=LEVELS[level], handlers=[handler], force=True)
