# SPDX-License-Identifier: MIT
"""What a person says of a periodic task: read, or refused beside the field it stands in."""

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
    """Everything that may be changed of a periodic task."""

    timing = forms.CharField(
        help_text="Five fields of cron like 0 3 * * *, or @hourly, @daily, @weekly, @monthly, "
        "@yearly, every 10m, at 2026-12-24T18:00Z."
    )
    zone = forms.CharField(
        label="Time zone", help_text="In which cron is read, like Europe/Berlin or UTC."
    )
    jitter = forms.CharField(
        initial="0s", help_text="Over how long runs are spread after their tick, like 30s."
    )
    overlap = forms.BooleanField(
        required=False, label="Begin a run while an earlier one is unfinished"
    )
    catch_up = forms.ChoiceField(
        choices=CATCH_UP, label="Missed ticks", help_text="Ticks while no worker was there."
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
        """The timing as it is stored."""
        return _read(read_timing, self.cleaned_data["timing"])

    def clean_zone(self) -> str:
        """The name of a time zone there is."""
        _read(zone_of, self.cleaned_data["zone"])
        return str(self.cleaned_data["zone"])

    def clean_jitter(self) -> timedelta:
        """A duration."""
        return _read(duration, self.cleaned_data["jitter"])

    def clean_args(self) -> Any:
        """A list."""
        return _json(self.cleaned_data["args"], list, 'an array like [1, "two"]')

    def clean_kwargs(self) -> Any:
        """A dict."""
        return _json(self.cleaned_data["kwargs"], dict, 'an object like {"day": 1}')


class AddForm(ChangeForm):
    """A new periodic task."""

    name = forms.CharField()
    task = forms.ChoiceField()
    queue = forms.CharField(required=False, help_text="Empty: as the task has it.")
    priority = forms.IntegerField(
        required=False, min_value=-100, max_value=100, help_text="Empty: as the task has it."
    )
    max_attempts = forms.IntegerField(
        required=False, min_value=1, max_value=ATTEMPTS_MAX, help_text="Empty: as the task has it."
    )
    field_order = ("name", "task")

    def __init__(self, *args: Any, tasks: Mapping[str, Any], **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["task"].choices = [(name, name) for name in tasks]

    def clean_name(self) -> str:
        """A name that a schedule may have."""
        return _read(lambda name: check_name("schedule", name), self.cleaned_data["name"])


def _read[T](reader: Callable[[str], T], text: str) -> T:
    try:
        return reader(text)
    except ValueError as error:
        raise forms.ValidationError(str(error)) from None


def _json(text: str, kind: type, wanted: str) -> Any:
    value = _read(lambda said: unpack(check_text(said).text), text)
    if not isinstance(value, kind):
        raise forms.ValidationError(f"Write {wanted}.")
    return value


# -- What a form begins with ---------------------------------------------------------------------


def blank() -> dict[str, Any]:
    """What the form of a new periodic task begins with."""
    return {"zone": settings.TIME_ZONE, "args": "[]", "kwargs": "{}"}


def said_of(schedule: Schedule) -> dict[str, Any]:
    """A schedule as a person would write it."""
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
    """The arguments of a spec, number by number as they are stored."""
    try:
        parts = msgspec.json.decode(stored, type=dict[str, msgspec.Raw])
        return {
            name: msgspec.json.format(bytes(parts[name])).decode() for name in ("args", "kwargs")
        }
    except (msgspec.MsgspecError, KeyError):
        return {"args": stored, "kwargs": "{}"}  # Somebody altered the row; people should see it.


# -- What comes of it ----------------------------------------------------------------------------


def tasks_of(database: str) -> dict[str, tuple[Backend, str]]:
    """The tasks of every alias in a database, by the names of their runs: backend and path."""
    autodiscover_modules("tasks")
    found = {}
    for backend in _backends(database):
        for path in sorted(KNOWN):
            try:
                definition_at(path)
            except ImportError:
                continue  # Defined, and then hidden behind another name: no run can name it.
            found[backend.name_of(path)] = backend, path
    return found


def _backends(database: str) -> Iterator[Backend]:
    for backend in compat.task_backends.all():
        if isinstance(backend, Backend) and backend.database == database:
            yield backend


def added(backend: Backend, path: str, said: Mapping[str, Any]) -> Schedule:
    """A new schedule of a task; what is wrong with it is among REFUSALS."""
    task = definition_at(path).using(
        backend=backend.alias, queue_name=said["queue"] or None, priority=said["priority"]
    )
    spec = backend.describe(task, said["args"], said["kwargs"])
    if said["max_attempts"] is not None:
        retry = replace(spec.delivery.retry, attempts=said["max_attempts"])
        spec = replace(spec, delivery=replace(spec.delivery, retry=retry))
    return make_schedule(said["name"], spec, **_timing(said))


def changed(database: str, before: Schedule, said: Mapping[str, Any]) -> Schedule:
    """A schedule as a person has changed it; what they cannot see of it stays as it was."""
    delivery, owner = before.delivery, _owner(database, before.task)
    if owner is not None:
        _check_queue(owner[0], said["queue"])
    how = Delivery(
        queue=said["queue"],
        priority=said["priority"],
        timeout=delivery.timeout,
        retry=replace(delivery.retry, attempts=said["max_attempts"]),
        labels=before.labels,
        unique_key=_key(before, None if owner is None else owner[1], said),
    )
    spec = describe(before.task, before.version, said["args"], said["kwargs"], delivery=how)
    return make_schedule(before.name, spec, **_timing(said))


def _timing(said: Mapping[str, Any]) -> Timing:
    # Whatever the text says, it is read as a timing that a person wrote.
    return {
        "cron": said["timing"],
        "zone": said["zone"],
        "jitter": said["jitter"],
        "overlap": said["overlap"],
        "catch_up": said["catch_up"],
    }


def _owner(database: str, task: str) -> tuple[Backend, Any] | None:
    """The backend and the definition of a task; None for one that cannot be imported here."""
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


def _key(before: Schedule, task: Any, said: Mapping[str, Any]) -> str | None:
    """The key that its task gives a call; the schedule's own is none of the task's."""
    if before.unique_key in {None, f"schedule:{before.name}"}:
        return None
    key = None if task is None else key_of(task)
    return before.unique_key if key is None else key(tuple(said["args"]), said["kwargs"])


REFUSALS = (ValueError, TypeError, compat.InvalidTask)
"""What is raised of a form whose parts make no sense together."""
