# SPDX-License-Identifier: MIT
"""Turns events into log lines: text for people, JSON for machines. Events contain no payloads.

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

from byrote.core.events import Event, Lost, level_of
from byrote.core.text.ids import shortened
from byrote.core.text.printable import json_printable, one_line, printable

type Format = Literal["text", "json"]
type Now = Callable[[], datetime]

_encode_lines = msgspec.json.Encoder().encode_lines

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
COLUMNS = 120
"""An event whose error does not fit into a line of this length gets a second line for it."""
WORKER_EVENTS = ("WorkerStarted", "WorkerStopping", "WorkerStopped")
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "byrote"}
"""Attributes of a log record that are not fields from `extra`."""


class LogWriter:
    """Writes events to a stream, each once, whole lines only."""

    def __init__(self, stream: TextIO, *, form: Format, level: str, now: Now) -> None:
        self._stream = stream
        self._form = form
        self._now = now
        self._level = LEVELS[level]
        self._lock = threading.Lock()

    def __call__(self, events: Sequence[Event]) -> None:
        """Write these events, if their level is logged."""
        if self._level > logging.INFO:
            events = [event for event in events if level_of(event) >= self._level]
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
    # No line break occurs inside an object, so each of these begins one.
    objects = b"\n" + _encode_lines(events)
    return json_printable(f'\n{{"at":"{at}",'.join(objects.decode().split("\n{"))[1:])


def text_line(at: str, event: Event) -> str:
    """One event as a person reads it, in 120 columns if its names are not too long."""
    fields = {name: value for name, value in msgspec.structs.asdict(event).items() if value != ""}
    kind = type(event).__name__
    if kind not in WORKER_EVENTS and not isinstance(event, Lost):
        # All lines of a log come from one worker; `Lost` names another one.
        fields.pop("worker", None)
    if "run" in fields:
        fields["run"] = shortened(fields["run"])
    error = fields.pop("error", None)
    mark = "!" if level_of(event) > logging.INFO else " "
    shown = [f"{name}={_plain(value)}" for name, value in fields.items()]
    line = f"{at[11:23]} {mark} {kind:<14} {' '.join(shown)}"
    if error is None:
        return f"{line}\n"
    whole = f"{line} error={_plain(error)}"
    return f"{whole if len(whole) <= COLUMNS else f'{line}\n    {_cut(one_line(error))}'}\n"


def _cut(text: str) -> str:
    room = COLUMNS - len("    ")
    return text if len(text) <= room else f"{text[: room - 1]}…"


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    text = one_line(str(value))
    return json.dumps(text, ensure_ascii=False) if " " in text else text


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """The fields that the caller of `logging` has added with `extra`."""
    extra = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    return extra | dict(getattr(record, "byrote", {}))


class JsonFormatter(logging.Formatter):
    """The standard logging module's records, in the same form as the events."""

    def format(self, record: logging.LogRecord) -> str:
        """One JSON object per record."""
        at = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "at": at.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {f"{name}_" if name in line else name: v for name, v in fields_of(record).items()}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json_printable(_as_json(line))


def _as_json(line: Mapping[str, Any]) -> str:
    try:
        return msgspec.json.encode(line, enc_hook=str).decode()
    except (TypeError, ValueError):
        # A key that is not a text, or half of a surrogate pair.
        return json.dumps({name: str(value) for name, value in line.items()})


class TextFormatter(logging.Formatter):
    """The same records as a person reads them: nothing that is quoted can begin a line."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s   %(levelname)-7s %(name)s: %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 -- logging's name.
        """The line itself; with the run's id, if an attempt has written it."""
        run = fields_of(record).get("run")
        named = f"[{shortened(str(run))}] " if run else ""
        record.message = one_line(named + record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 -- logging's name.
        """A traceback, indented: the text of an error may contain line breaks."""
        return textwrap.indent(printable(super().formatException(ei)), "    ")


class AttemptFilter(logging.Filter):
    """Adds the fields of the attempt whose code logs, whatever logger it uses."""

    def __init__(self, fields: Callable[[], Mapping[str, Any] | None]) -> None:
        super().__init__()
        self._fields = fields

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields to the record, if an attempt has logged it."""
        fields = self._fields()
        if fields is not None and not hasattr(record, "byrote"):
            record.byrote = fields
        return True


class LogHandler(logging.StreamHandler[TextIO]):
    """The handler of the standard logging module's records that Byrote installs."""


def set_up_logging(
    form: str, level: str, attempt: Callable[[], Mapping[str, Any] | None] | None = None
) -> None:
    """Send the standard logging module's records to standard error in the chosen form.

    `attempt` returns the fields of the attempt whose code is running, if any.
    """
    handler = LogHandler()
    if attempt is not None:
        handler.addFilter(AttemptFilter(attempt))
    # Not only on the root: a logger with its own level, as in Django, ignores the root's level.
    handler.setLevel(LEVELS[level])
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=LEVELS[level], handlers=[handler], force=True)
