# SPDX-License-Identifier: MIT
"""How a task is delivered: OPTIONS of its backend, overridden by the task's own options."""

import inspect
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec
from django.utils import timezone
from django.utils.module_loading import import_string

from byrote.core.duration import duration
from byrote.core.errors import BadOption
from byrote.core.policy import ONCE, Retry
from byrote.core.spec import Delivery
from byrote.core.text.schema_name import checked_schema
from byrote.core.unique import CallKey, KeyOf, call_key

type BackoffFunction = Callable[[BaseException, Any], float | timedelta | None]
"""Takes an attempt's exception and result; returns seconds until the next attempt, None to stop."""

type BackoffOption = str | Retry | BackoffFunction
"""`exponential`, `linear`, `fixed`, a Retry, or a function (in OPTIONS also its path)."""

BACKOFF, STORED = "byrote.backoff", "stored"
"""The label for a call's own back-off, and its value if that is the stored policy."""
CONNECTIONS_MAX = 10_000
CURVES = frozenset({"exponential", "linear", "fixed"})


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long ended runs are kept; absent: the retention of their queues."""

    successful: timedelta | None = None
    """For successful and cancelled runs. They are dropped by the day, so at least one day."""
    failed: timedelta | None = None


class BackendOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Parsed OPTIONS of a backend in TASKS."""

    database: str | None = None
    """The alias in DATABASES; absent: the routers' choice for Byrote's models."""
    schema: str | None = None
    """The schema of Byrote's tables; absent: the search path of the database finds them."""
    max_attempts: int = 1
    backoff: BackoffOption | None = None
    timeout: timedelta | None = None
    retention: Retention = Retention()
    listen: bool = True
    """False behind a transaction pooler: workers only poll, and change no session settings."""
    async_connections: int = 20
    """Connections that one worker's async tasks may use at once, over all its processes."""


def read_options(options: Mapping[str, Any]) -> BackendOptions:
    """Parse OPTIONS; raises BadOption with the error and what to write instead."""
    read: dict[str, Any] = {}
    for name, value in options.items():
        reader = READERS.get(name)
        if reader is None:
            raise BadOption(f"Unknown option {name!r}. There are: {', '.join(READERS)}.")
        try:
            read[name.lower()] = reader(value)
        except (ValueError, TypeError, ImportError) as error:
            raise BadOption(f"{name}: {error}") from None
    return BackendOptions(**read)


def faults(options: Mapping[str, Any]) -> list[str]:
    """Return all errors of OPTIONS, one sentence each."""
    found = []
    for name, value in options.items():
        try:
            read_options({name: value})
        except BadOption as error:
            found.append(str(error))
    return found


def read_attempts(value: Any) -> int:
    """Parse a number of attempts."""
    return Retry(attempts=value).attempts


def read_backoff(value: Any) -> BackoffOption:
    """Check a back-off; raises ValueError. A path is imported when it is first needed."""
    match value:
        case Retry():
            return value
        case str() if value in CURVES or "." in value:
            return value
        case _ if callable(value):
            return value  # type: ignore[no-any-return]
        case _:
            raise ValueError(
                "a back-off is 'exponential', 'linear', 'fixed', a byrote.Retry, or a function of "
                f"an exception and a task result; not {value!r}."
            )


def _read_timeout(value: Any) -> timedelta | None:
    return None if value is None else Delivery(timeout=value).timeout


def _read_retention(value: Any) -> Retention:
    if not isinstance(value, Mapping) or not value.keys() <= set(Retention.__struct_fields__):
        raise TypeError(
            f"write {{'successful': '7d', 'failed': '30d'}}, or one of the two; not {value!r}."
        )
    kept = Retention(**{name: duration(length) for name, length in value.items()})
    if kept.successful is not None and kept.successful < timedelta(days=1):
        raise ValueError("successful runs are dropped by the day; keep them for at least '1d'.")
    return kept


def _read_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"write True or False, not {value!r}.")
    return value


def _read_database(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"name an alias in DATABASES, not {value!r}.")
    return value


def _read_connections(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= CONNECTIONS_MAX:
        raise ValueError(f"write a whole number from 1 to {CONNECTIONS_MAX}, not {value!r}.")
    return value


READERS: Mapping[str, Callable[[Any], Any]] = {
    "DATABASE": _read_database,
    "SCHEMA": checked_schema,
    "MAX_ATTEMPTS": read_attempts,
    "BACKOFF": read_backoff,
    "TIMEOUT": _read_timeout,
    "RETENTION": _read_retention,
    "LISTEN": _read_flag,
    "ASYNC_CONNECTIONS": _read_connections,
}


def delivery_of(
    task: Any, options: BackendOptions, labels: Mapping[str, str] | None = None
) -> Delivery:
    """Return the delivery options of a task; raises ValueError if they are invalid."""
    timeout = getattr(task, "timeout", None)
    key = getattr(task, "unique_key", None)
    return Delivery(
        queue=task.queue_name,
        priority=int(task.priority),
        run_after=moment_of(task.run_after),
        timeout=options.timeout if timeout is None else duration(timeout),
        retry=retry_of(task, options),
        labels=labels,
        unique_key=None if callable(key) else key,
    )


def key_of(task: Any) -> CallKey | None:
    """The function that computes unique keys of calls; None if the key is not a function.

    Raises BadOption if the function does not fit the task's arguments.
    """
    key = getattr(task, "unique_key", None)
    return _call_key(key, task.func, task.takes_context) if callable(key) else None


@lru_cache(
    maxsize=256
)  # Reading a signature takes longer than the rest of an enqueue's Python code.
def _call_key(key: KeyOf, function: Callable[..., Any], takes_context: bool) -> CallKey:
    signature = inspect.signature(function)
    if takes_context:
        _context, *parameters = signature.parameters.values()
        signature = signature.replace(parameters=parameters)
    return call_key(key, signature, function.__name__)


def retry_of(task: Any, options: BackendOptions) -> Retry:
    """The number of attempts and the delays between them, unless a back-off function decides."""
    attempts = getattr(task, "max_attempts", None)
    attempts = options.max_attempts if attempts is None else attempts
    match backoff_of(task, options):
        case Retry() as policy:
            return msgspec.structs.replace(policy, attempts=attempts)
        case str() as curve if curve in CURVES:
            return Retry(attempts=attempts, backoff=curve)  # type: ignore[arg-type]
        case _:
            return ONCE if attempts == 1 else Retry(attempts=attempts)


def backoff_of(task: Any, options: BackendOptions) -> BackoffOption | None:
    """The task's own back-off, else its backend's."""
    chosen = getattr(task, "backoff", None)
    return options.backoff if chosen is None else chosen


def labels_of(task: Any) -> dict[str, str] | None:
    """The labels of a run: the task's labels, and one for a back-off set for this call.

    A policy is stored with the run; a function is named by its path and replaces the task's own.
    """
    labels = dict(getattr(task, "labels", None) or {})
    return (labels | _backoff_label(task)) or None


def _backoff_label(task: Any) -> dict[str, str]:
    chosen = getattr(task, "backoff", None)
    if chosen is None or chosen is getattr(_definition(task), "backoff", None):
        return {}
    if isinstance(chosen, Retry) or chosen in CURVES:
        return {BACKOFF: STORED}
    path = chosen if isinstance(chosen, str) else f"{chosen.__module__}.{chosen.__qualname__}"
    try:
        import_string(path)
    except ImportError:
        raise ValueError(
            f"A worker cannot import the back-off {path}; define it as a function of a module."
        ) from None
    return {BACKOFF: path}


def _definition(task: Any) -> Any:
    try:
        return import_string(task.module_path)
    except ImportError:
        return None


def has_wait(task: Any, options: BackendOptions, labels: Mapping[str, str]) -> bool:
    """Whether a function decides on the next attempt; imports nothing."""
    chosen = labels.get(BACKOFF) or backoff_of(task, options)
    return (
        chosen is not None
        and chosen != STORED
        and chosen not in CURVES
        and not isinstance(chosen, Retry)
    )


def wait_of(
    task: Any, options: BackendOptions, labels: Mapping[str, str]
) -> BackoffFunction | None:
    """The function that decides on the next attempt, if there is one."""
    chosen = labels.get(BACKOFF) or backoff_of(task, options)
    if chosen == STORED:
        return None
    if isinstance(chosen, str) and chosen not in CURVES:
        chosen = import_string(chosen)
    return chosen if callable(chosen) else None


def moment_of(run_after: Any) -> datetime | None:
    """Return the moment in UTC; raises ValueError if it is outside the calendar."""
    if run_after is None:
        return None
    if not isinstance(run_after, datetime):
        raise TypeError(
            "run_after is a datetime, for example timezone.now() + timedelta(minutes=10), "
            f"not {run_after!r}."
        )
    aware = timezone.make_aware(run_after) if timezone.is_naive(run_after) else run_after
    try:
        return aware.astimezone(UTC)
    except OverflowError:
        raise ValueError("run_after is outside the years 1 to 9999.") from None
