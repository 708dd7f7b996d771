# SPDX-License-Identifier: MIT
"""Forms of periodic tasks: parse the fields, and report errors beside them."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import msgspec
from django import forms
from django.conf import settings
from django.utils.module_loading import autodiscover_modules
from msgspec.structs import replace

from byrote.core.duration import duration, spoken
from byrote.core.errors import BadOption
from byrote.core.json.codec import check_text, unpack
from byrote.core.policy import ATTEMPTS_MAX
from byrote.core.schedule.schedule import Schedule, Timing, make_schedule
from byrote.core.schedule.timing import read_timing, zone_of
from byrote.core.spec import Delivery, check_name, describe
from byrote.django import compat
from byrote.django.backend.backend import KNOWN, Backend, definition_at
from byrote.django.backend.policy import key_of

CATCH_UP = [("one", "Run the latest"), ("all", "Run all"), ("none", "Run none")]


class ChangeForm(forms.Form):
    """Form to change a periodic task."""

    timing = forms.CharField(
        help_text="Five cron fields such as 0 3 * * *, or @hourly, @daily, @weekly, @monthly, "
        "@yearly, every 10m, at 2026-12-24T18:00Z."
    )
    zone = forms.CharField(
        label="Time zone", help_text="Time zone of the cron fields, such as Europe/Berlin or UTC."
    )
    jitter = forms.CharField(
        initial="0s", help_text="Runs start at a random time up to this long after the tick: 30s."
    )
    overlap = forms.BooleanField(
        required=False, label="Start a run even if an earlier one is unfinished"
    )
    catch_up = forms.ChoiceField(
        choices=CATCH_UP, label="Missed ticks", help_text="Ticks while no worker was running."
    )
    queue = forms.CharField()
    priority = forms.IntegerField(min_value=-100, max_value=100)
    max_attempts = forms.IntegerField(min_value=1, max_value=ATTEMPTS_MAX)
    args = forms.CharField(
        label="Arguments",
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        help_text="A JSON array.",
    )
    kwargs = forms.CharField(
        label="Keyword arguments",
        widget=forms.Textarea(attrs={"rows": 5, "spellcheck": "false"}),
        help_text="A JSON object.",
    )

    def clean_timing(self) -> str:
        """Return the timing as it is stored."""
        return _read(read_timing, self.cleaned_data["timing"])

    def clean_zone(self) -> str:
        """Return the name of an existing time zone."""
        _read(zone_of, self.cleaned_data["zone"])
        return str(self.cleaned_data["zone"])

    def clean_jitter(self) -> timedelta:
        """Return the duration."""
        return _read(duration, self.cleaned_data["jitter"])

    def clean_args(self) -> Any:
        """Return the list of arguments."""
        return _json(self.cleaned_data["args"], list, 'an array like [1, "two"]')

    def clean_kwargs(self) -> Any:
        """Return the dict of keyword arguments."""
        return _json(self.cleaned_data["kwargs"], dict, 'an object like {"day": 1}')


class AddForm(ChangeForm):
    """Form to add a periodic task."""

    name = forms.CharField()
    task = forms.ChoiceField()
    queue = forms.CharField(required=False, help_text="Empty: the task's own value.")
    priority = forms.IntegerField(
        required=False, min_value=-100, max_value=100, help_text="Empty: the task's own value."
    )
    max_attempts = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=ATTEMPTS_MAX,
        help_text="Empty: the task's own value.",
    )
    field_order = ("name", "task")

    def __init__(self, *args: Any, tasks: Mapping[str, Any], **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["task"].choices = [("", "---------"), *((name, name) for name in tasks)]

    def clean_name(self) -> str:
        """Return a valid name of a schedule."""
        return _read(lambda name: check_name("schedule", name), self.cleaned_data["name"])


def _read[T](reader: Callable[[str], T], text: str) -> T:
    try:
        return reader(text)
    except ValueError as error:
        raise forms.ValidationError(str(error)) from None


def _json(text: str, cls: type, example: str) -> Any:
    value = _read(lambda raw: unpack(check_text(raw).text), text)
    if not isinstance(value, cls):
        raise forms.ValidationError(f"Write {example}.")
    return value


# -- Initial values ------------------------------------------------------------------------------


def blank() -> dict[str, Any]:
    """Initial values of the form to add a periodic task."""
    return {"zone": settings.TIME_ZONE, "args": "[]", "kwargs": "{}"}


def initial_of(schedule: Schedule) -> dict[str, Any]:
    """Initial values of the form to change a schedule."""
    return {
        "timing": schedule.timing,
        "zone": schedule.zone,
        "jitter": spoken(timedelta(microseconds=schedule.jitter_us)),
        "overlap": schedule.overlap,
        "catch_up": schedule.catch_up,
        "queue": schedule.queue,
        "priority": schedule.priority,
        "max_attempts": schedule.max_attempts,
        **_arguments(schedule.spec_json),
    }


def _arguments(stored: str) -> dict[str, str]:
    """The arguments of a spec as JSON text, with numbers exactly as they are stored."""
    try:
        parts = msgspec.json.decode(stored, type=dict[str, msgspec.Raw])
        return {
            name: msgspec.json.format(bytes(parts[name])).decode() for name in ("args", "kwargs")
        }
    except (msgspec.MsgspecError, KeyError):
        return {"args": stored, "kwargs": "{}"}  # The row was altered; show it as it is.


# -- Schedules -----------------------------------------------------------------------------------


def tasks_of(database: str) -> dict[str, tuple[Backend, str]]:
    """The tasks of every alias in a database: run name to (backend, path)."""
    autodiscover_modules("tasks")
    found = {}
    for backend in _backends(database):
        for path in sorted(KNOWN):
            try:
                definition_at(path)
            except ImportError:
                continue  # Its module attribute was replaced after definition: no run can name it.
            found[backend.name_of(path)] = backend, path
    return found


def _backends(database: str) -> Iterator[Backend]:
    for backend in compat.task_backends.all():
        if isinstance(backend, Backend) and backend.database == database:
            yield backend


def added(backend: Backend, path: str, values: Mapping[str, Any]) -> Schedule:
    """Return a new schedule of a task; raises one of REFUSALS if it is invalid."""
    task = definition_at(path).using(
        backend=backend.alias, queue_name=values["queue"] or None, priority=values["priority"]
    )
    spec = backend.describe(task, values["args"], values["kwargs"])
    if values["max_attempts"] is not None:
        retry = replace(spec.delivery.retry, attempts=values["max_attempts"])
        spec = replace(spec, delivery=replace(spec.delivery, retry=retry))
    return make_schedule(values["name"], spec, **_timing(values))


def changed(database: str, before: Schedule, values: Mapping[str, Any]) -> Schedule:
    """Return the schedule with the form's values; fields that are not in the form stay."""
    delivery, owner = before.delivery, _owner(database, before.task)
    if owner is not None:
        _check_queue(owner[0], values["queue"])
    how = Delivery(
        queue=values["queue"],
        priority=values["priority"],
        timeout=delivery.timeout,
        retry=replace(delivery.retry, attempts=values["max_attempts"]),
        labels=before.labels,
        unique_key=_key(before, None if owner is None else owner[1], values),
    )
    spec = describe(before.task, before.version, values["args"], values["kwargs"], delivery=how)
    return make_schedule(before.name, spec, **_timing(values))


def _timing(values: Mapping[str, Any]) -> Timing:
    # `cron` accepts every kind of timing as text, also "every 10m" and "at …".
    return {
        "cron": values["timing"],
        "zone": values["zone"],
        "jitter": values["jitter"],
        "overlap": values["overlap"],
        "catch_up": values["catch_up"],
    }


def _owner(database: str, task: str) -> tuple[Backend, Any] | None:
    """The backend and the definition of a task; None if it cannot be imported here."""
    for backend in _backends(database):
        path = backend.path_of(task)
        if path is not None:
            try:
                return backend, definition_at(path)
            except ImportError:
                return None
    return None


def _check_queue(backend: Backend, queue: str) -> None:
    if backend.queues and queue not in backend.queues:
        known = ", ".join(sorted(backend.queues))
        raise BadOption(f"{queue!r} is not among the QUEUES of {backend.alias!r}: {known}.")


def _key(before: Schedule, task: Any, values: Mapping[str, Any]) -> str | None:
    """The unique key that the task computes; None if the key was the schedule's default."""
    if before.unique_key in {None, f"schedule:{before.name}"}:
        return None
    key = None if task is None else key_of(task)
    return before.unique_key if key is None else key(tuple(values["args"]), values["kwargs"])


REFUSALS = (ValueError, TypeError, compat.InvalidTask)
"""Errors raised if valid fields do not fit together."""
