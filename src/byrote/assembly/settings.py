# SPDX-License-Identifier: MIT
"""Settings and their origins: defaults < byrote.toml or [tool.byrote] < environment < flags."""

import os
import tomllib
import warnings
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from byrote.assembly.setting_values import read_value
from byrote.assembly.variables import (
    SHORT_NAMES,
    unknown_variable,
    unknown_variables,
    variable_of,
)
from byrote.core.artifact import SIZE_MAX
from byrote.core.errors import BadOption
from byrote.core.json.codec import PAYLOAD_MAX, pack
from byrote.core.text.redaction import HIDDEN

SECRET = frozenset({"database_url", "service_token"})
OTHER_FLAGS = {"database_url": "url", "poll_interval": "poll"}
"""Settings whose flag has another name."""
NOTICED = ("artifact_max", "deterministic", "payload_max", "payload_mode")
"""Settings of a worker that can affect a task's result."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings; `None` means that Byrote chooses a value itself."""

    database_url: str | None = None
    """URL of the PostgreSQL database, or `embedded`; absent: the embedded server, if
    byrote[embedded] is installed. The driver in `postgresql+asyncpg://` is ignored."""
    pooled: bool = False
    """The URL leads to a transaction pooler: no LISTEN, no prepared statements, no SET."""
    schema: str | None = None
    """The schema of Byrote's tables; absent: the first of the connection's search path."""
    pool_size: Annotated[int, Meta(ge=1, le=1_000)] = 8
    """Maximum number of connections of an app, and of each of its event loops."""
    enqueue_patience: timedelta = timedelta(seconds=10)
    """How long an app's calls wait for a free connection or a database that does not answer; also
    an argument of `App`. A try to connect ends after 5 s, or after the patience if that is shorter,
    but not before 2 s."""
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
    """Name of the worker; absent: made of host, process and a random part. A second worker with the
    name of a live one is refused; that of a killed one is free 25 s after its last heartbeat."""
    hands: Annotated[int, Meta(ge=1, le=1_000)] | None = None
    """Child processes; absent: one per core."""
    concurrency: Annotated[int, Meta(ge=1, le=100_000)] = 100
    """Maximum number of async tasks at once, over all hands."""
    threads: Annotated[int, Meta(ge=1, le=64)] = 1
    """Maximum number of sync tasks at once in each hand."""
    lease: timedelta = timedelta(seconds=30)
    """How long a worker owns a run without renewing its lease; at least one second."""
    grace: timedelta = timedelta(seconds=25)
    """How long a stopping worker waits for running attempts."""
    poll_interval: timedelta = timedelta(seconds=1)
    """How often an idle worker looks for runs without a notification."""
    listen: bool = True
    """Also wake up at once by PostgreSQL's NOTIFY."""
    claims: Literal["durable", "fast"] = "durable"
    """`fast`: a claim does not wait for the disk."""
    max_tasks: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
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
    """Format of the log; `auto`: text on a terminal, otherwise JSON."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important level that is logged."""
    log_tracebacks: bool = True
    """Log messages and tracebacks of failed attempts, which may quote arguments."""
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
    "WORKER_ID": "worker_id",
    "POLL_INTERVAL": "poll_interval",
    "QUEUE_NAME": "queues",
    "PYTHON_PATH": "python_path",
}
"""Variables without a prefix. Other programs use such names, too: they count only beside
DATABASE_URL, and only without BYROTE_DATABASE_URL."""
DATABASE_ALIAS = "DATABASE_URL"


class Resolved(msgspec.Struct, frozen=True):
    """Settings, and the origin of each value."""

    settings: Settings
    origins: Mapping[str, str]
    ignored: Mapping[str, str]
    """Variables without a prefix that are set but do not count, by setting."""


def resolve(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Resolved:
    """Merge the settings of all sources.

    Raises BadOption for an invalid value, with its source, and for a variable that nothing reads.
    """
    environ = os.environ if environ is None else environ
    check_variables(environ)
    return merge(flags, environ=environ, folder=folder)


def check_variables(environ: Mapping[str, str]) -> None:
    """Raise BadOption for the first variable `BYROTE_…` that nothing reads."""
    for name in unknown_variables(environ, Settings.__struct_fields__)[:1]:
        raise unknown_variable(name, Settings.__struct_fields__)


def merge(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str],
    folder: Path | None = None,
) -> Resolved:
    """Merge the settings of all sources, whatever other variables there are.

    For commands that report unknown variables in their own way.
    """
    values: dict[str, Any] = {}
    origins = dict.fromkeys(Settings.__struct_fields__, "default")
    aliases = _aliases(environ)
    for origin, found in (
        *_files(folder or Path.cwd()),
        *aliases,
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
    _warn_of_short_names(origins)
    unused = {} if aliases else {n: alias for alias, n in ALIASES.items() if environ.get(alias)}
    return Resolved(Settings(**values), origins, unused)


def _files(folder: Path) -> list[tuple[str, Mapping[str, Any]]]:
    for parent in (folder, *folder.parents):
        own, project = parent / "byrote.toml", parent / "pyproject.toml"
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


def _aliases(environ: Mapping[str, str]) -> list[tuple[str, Mapping[str, Any]]]:
    """Read the variables without a prefix; none if the database is not named in the same way."""
    ours = variable_of("database_url")
    if not environ.get(DATABASE_ALIAS) or environ.get(ours) or environ.get(f"{ours}_FILE"):
        return []
    return [
        (f"environment {alias}", {name: environ[alias]})
        for alias, name in {DATABASE_ALIAS: "database_url", **ALIASES}.items()
        if environ.get(alias)
    ]


def _environment(environ: Mapping[str, str]) -> list[tuple[str, Mapping[str, Any]]]:
    # Before all others, so that the variable with the setting's name wins.
    found: list[tuple[str, Mapping[str, Any]]] = [
        (f"environment {short}", {name: environ[short]})
        for short, name in SHORT_NAMES.items()
        if environ.get(short)
    ]
    for name in Settings.__struct_fields__:
        key = variable_of(name)
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


def _warn_of_short_names(origins: Mapping[str, str]) -> None:
    """Warn, once per process, for each setting whose value came from a short name."""
    for short, name in SHORT_NAMES.items():
        if origins[name] == f"environment {short}":
            text = f"{short} is read as {variable_of(name)}; set {variable_of(name)} instead."
            warnings.warn(text, stacklevel=1)


def _read(name: str, raw: Any, origin: str) -> Any:
    if name not in Settings.__struct_fields__:
        raise _unknown_setting(name, origin)
    if name in SECRET and not isinstance(raw, str):
        raise BadOption(f"{_written(name, origin)}: write a text in quotes, not {HIDDEN}")
    try:
        return read_value(name, Settings.__annotations__[name], raw)
    except (ValueError, TypeError) as error:
        raise BadOption(f"{_written(name, origin)}: {error}") from None


def _written(name: str, origin: str) -> str:
    """How a person wrote this setting: `--lease`, or `byrote.toml: lease`."""
    if origin != "flag":
        return f"{origin}: {name}"
    return "--" + OTHER_FLAGS.get(name, name).replace("_", "-")


def _unknown_setting(name: str, origin: str) -> BadOption:
    # An error path only: importing difflib takes longer than reading all settings.
    from difflib import get_close_matches  # noqa: PLC0415

    near = get_close_matches(name, Settings.__struct_fields__, 1)
    meant = f" Do you mean {near[0]!r}?" if near else ""
    known = ", ".join(Settings.__struct_fields__)
    return BadOption(f"{origin}: unknown setting {name!r}.{meant} There are: {known}.")
