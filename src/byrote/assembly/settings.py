# SPDX-License-Identifier: MIT
"""Settings and their origins: defaults < byrote.toml or [tool.byrote] < environment < flags."""

import os
import tomllib
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import msgspec

from byrote.core.artifact import SIZE_MAX
from byrote.core.duration import duration
from byrote.core.errors import BadOption
from byrote.core.json.codec import PAYLOAD_MAX, pack
from byrote.core.spec import check_name

SECRET = frozenset({"database_url", "service_token"})
NOTICED = ("artifact_max", "deterministic", "payload_max", "payload_mode")
"""Settings of a worker that can affect a task's result."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings; `None` means that Byrote chooses a value itself."""

    database_url: str | None = None
    """URL of the PostgreSQL database; absent: the embedded server."""
    pooled: bool = False
    """The URL leads to a transaction pooler: no LISTEN, no prepared statements, no SET."""
    service_url: str | None = None
    """URL of the queue service, for the SDK."""
    service_token: str | None = None
    """Access token of the queue service."""
    queues: Mapping[str, int] | None = None
    """Queues a worker serves and their weights: `mail=3,default`; absent: `default` and those that
    the app's tasks and schedules name."""
    app: str | None = None
    """`module:name` of the app whose code a replay executes, unless the command names one."""
    worker_id: str | None = None
    hands: int | None = None
    """Child processes; absent: one per core."""
    concurrency: int = 100
    """Maximum number of async tasks at once, over all hands."""
    threads: int = 1
    """Maximum number of sync tasks at once in each hand."""
    lease: timedelta = timedelta(seconds=30)
    grace: timedelta = timedelta(seconds=25)
    poll_interval: timedelta = timedelta(seconds=1)
    listen: bool = True
    claims: Literal["durable", "fast"] = "durable"
    max_tasks: int | None = None
    """Runs after which a hand is replaced."""
    max_rss: int | None = None
    """Bytes of memory above which a hand is replaced."""
    executor: Literal["hand", "inline", "command", "container"] = "hand"
    """Executor of tasks that do not set one."""
    payload_mode: Literal["stdin", "file", "argv"] = "stdin"
    """How commands that do not set it receive their spec."""
    deterministic: bool = True
    """Hands have a fixed hash seed, time zone and locale, and tasks a seeded `random`."""
    python_path: str | None = None
    """The interpreter hands run on; absent: this one."""
    log_format: Literal["auto", "text", "json"] = "auto"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    payload_max: Mapping[str, int] = msgspec.field(default_factory=lambda: {"*": PAYLOAD_MAX})
    """Maximum bytes of JSON of a spec, by queue; `*` is every other one: `4MB,media=16MB`."""
    artifacts: str | None = None
    """Where artifacts over 1 MiB are stored: a directory, or a URL such as s3://bucket/folder."""
    artifact_max: int = SIZE_MAX
    """Maximum bytes of an artifact."""
    keep_events: timedelta = timedelta(days=30)
    """How long the event log is kept, independently of the runs."""
    chain_events: bool = False
    """Chain the event log by hashes, so that `byrote verify` notices any change to it."""

    def payload_limit(self, queue: str) -> int:
        """Maximum bytes of a spec for this queue."""
        return self.payload_max.get(queue, self.payload_max["*"])


def fingerprint(settings: Settings) -> dict[str, Any]:
    """The settings that can affect a result: names of those not at their default, and a hash.

    Concurrency, database and logging are left out: nearly all workers differ in them, and they do
    not affect results.
    """
    plain = Settings()
    values = {name: str(getattr(settings, name)) for name in NOTICED}
    return {
        "set": sorted(name for name in NOTICED if values[name] != str(getattr(plain, name))),
        "hash": pack(values).digest.hex(),
    }


ALIASES: Mapping[str, str] = {
    "DATABASE_URL": "database_url",
    "WORKER_ID": "worker_id",
    "POLL_INTERVAL": "poll_interval",
    "QUEUE_NAME": "queues",
    "PYTHON_PATH": "python_path",
}


class Resolved(msgspec.Struct, frozen=True):
    """Settings, and the origin of each value."""

    settings: Settings
    origins: Mapping[str, str]


def resolve(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Resolved:
    """Merge the settings of all sources; raises BadOption with the source of an invalid value."""
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    origins = dict.fromkeys(Settings.__struct_fields__, "default")
    for origin, found in (
        *_files(folder or Path.cwd()),
        *_environment(environ),
        ("flag", flags or {}),
    ):
        for name, raw in found.items():
            if raw is None:
                continue
            values[name] = _read(name, raw, origin)
            origins[name] = origin
    if "database_url" not in values and ("PGHOST" in environ or "PGSERVICE" in environ):
        values["database_url"], origins["database_url"] = "postgresql://", "environment PGHOST"
    return Resolved(Settings(**values), origins)


def _files(folder: Path) -> list[tuple[str, Mapping[str, Any]]]:
    for place in (folder, *folder.parents):
        own, project = place / "byrote.toml", place / "pyproject.toml"
        if own.is_file():
            return [("byrote.toml", _flat(_toml(own)))]
        if project.is_file():
            found = _toml(project).get("tool", {}).get("byrote")
            return [] if found is None else [("pyproject.toml", _flat(found))]
    return []


def _flat(found: Mapping[str, Any]) -> dict[str, Any]:
    """Rename `events.chain` and `events.keep` of a file to chain_events and keep_events."""
    rest = dict(found)
    events = rest.pop("events", None)
    if not isinstance(events, Mapping):
        return dict(found)
    return {**rest, **{f"{name}_events": value for name, value in events.items()}}


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadOption(f"{path.name} cannot be read: {error}.") from None


def _environment(environ: Mapping[str, str]) -> list[tuple[str, Mapping[str, Any]]]:
    found: list[tuple[str, Mapping[str, Any]]] = [
        (f"environment {alias}", {name: environ[alias]})
        for alias, name in ALIASES.items()
        if environ.get(alias)
    ]
    for name in Settings.__struct_fields__:
        key = f"BYROTE_{name.upper()}"
        if environ.get(f"{key}_FILE"):
            secret = Path(environ[f"{key}_FILE"])
            try:
                found.append(
                    (f"environment {key}_FILE", {name: secret.read_text(encoding="utf-8").strip()})
                )
            except OSError as error:
                raise BadOption(f"{key}_FILE cannot be read: {error.strerror}.") from None
        if environ.get(key):
            found.append((f"environment {key}", {name: environ[key]}))
    return found


def _read(name: str, raw: Any, origin: str) -> Any:
    if name not in Settings.__struct_fields__:
        known = ", ".join(Settings.__struct_fields__)
        raise BadOption(f"{origin}: there is no setting {name!r}. There are: {known}.")
    try:
        return READERS.get(name, str)(raw)
    except (ValueError, TypeError) as error:
        raise BadOption(f"{origin}: {name}: {error}") from None


def read_queues(raw: Any) -> dict[str, int]:
    """Parse queues and weights from `mail=3,default`, a list, or a table."""
    if isinstance(raw, Mapping):
        pairs = [(name, weight) for name, weight in raw.items()]
    else:
        parts = raw.split(",") if isinstance(raw, str) else list(raw)
        pairs = [tuple(part.strip().partition("=")[::2]) for part in parts if part.strip()]
    queues = {check_name("queue", name): _weight(weight) for name, weight in pairs}
    if not queues:
        raise ValueError("name at least one queue, for example 'default' or 'mail=3,default'")
    return queues


def _weight(raw: Any) -> int:
    weight = 1 if raw == "" else int(raw)
    if not 1 <= weight <= 1_000:
        raise ValueError(f"a queue's weight is a number from 1 to 1000, not {raw}")
    return weight


def read_size(raw: Any) -> int:
    """Parse bytes from `512MB`, `2GB`, `64KB` or a number."""
    text = str(raw).strip().upper().removesuffix("B").removesuffix("I")
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    digits = text[:-1] if factor > 1 else text
    if not digits.isdigit():
        raise ValueError(f"write a size like 512MB or 2GB, not {raw!r}")
    if int(digits) < 1:
        raise ValueError(f"a size is at least 1 byte, not {raw!r}")
    return int(digits) * factor


def read_payload_max(raw: Any) -> dict[str, int]:
    """Parse sizes by queue from `4MB,media=16MB`, a single size, or a table."""
    if isinstance(raw, Mapping):
        pairs = [(name, size) for name, size in raw.items()]
    else:
        parts = [part.strip() for part in str(raw).split(",") if part.strip()]
        pairs = [_pair(part) for part in parts]
    sizes = {
        name if name == "*" else check_name("queue", name): read_size(size) for name, size in pairs
    }
    return {"*": PAYLOAD_MAX, **sizes}


def _pair(part: str) -> tuple[str, str]:
    name, equals, size = part.partition("=")
    return (name.strip(), size) if equals else ("*", name)


def _count(least: int, most: int) -> Callable[[Any], int]:
    def read(raw: Any) -> int:
        whole = isinstance(raw, int) and not isinstance(raw, bool)
        if not (whole or (isinstance(raw, str) and raw.strip().isdecimal())):
            raise ValueError(f"write a whole number, not {raw!r}")
        if not least <= int(raw) <= most:
            raise ValueError(f"choose a number from {least} to {most}, not {raw}")
        return int(raw)

    return read


def _lease(raw: Any) -> timedelta:
    lease = duration(raw)
    if lease < timedelta(seconds=1):
        raise ValueError(f"a lease shorter than a second cannot be renewed in time; not {raw}")
    return lease


def _keep_events(raw: Any) -> timedelta:
    kept = duration(raw)
    if kept < timedelta(days=1):
        raise ValueError(f"events are dropped by the day, so keep them for at least 1d; not {raw}")
    return kept


def _yes(raw: Any) -> bool:
    word = str(raw).strip().lower()
    if word in {"1", "true", "yes", "on"}:
        return True
    if word in {"0", "false", "no", "off"}:
        return False
    raise ValueError(f"write true or false, not {raw!r}")


def _one_of(*choices: str) -> Callable[[Any], str]:
    def read(raw: Any) -> str:
        if raw not in choices:
            raise ValueError(f"choose one of {', '.join(choices)}, not {raw!r}")
        return str(raw)

    return read


READERS: Mapping[str, Callable[[Any], Any]] = {
    "pooled": _yes,
    "queues": read_queues,
    "worker_id": lambda raw: check_name("worker", raw),
    "hands": _count(1, 1_000),
    "concurrency": _count(1, 100_000),
    "threads": _count(1, 64),
    "lease": _lease,
    "grace": duration,
    "poll_interval": duration,
    "listen": _yes,
    "deterministic": _yes,
    "claims": _one_of("durable", "fast"),
    "max_tasks": _count(1, 1_000_000_000),
    "max_rss": read_size,
    "executor": _one_of("hand", "inline", "command", "container"),
    "payload_mode": _one_of("stdin", "file", "argv"),
    "log_format": _one_of("auto", "text", "json"),
    "log_level": _one_of("debug", "info", "warning", "error"),
    "payload_max": read_payload_max,
    "artifact_max": read_size,
    "keep_events": _keep_events,
    "chain_events": _yes,
}
