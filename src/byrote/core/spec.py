# SPDX-License-Identifier: MIT
"""One piece of work, described.

The *identity* of a spec is what will be computed: task, version, args, kwargs. It is stored as the
JSON text that was sent and hashed in canonical form. Everything else is *delivery*: when, where and
how often to try. Two specs with the same identity share a hash whatever their delivery.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack

import msgspec

from byrote.core.duration import DurationLike, duration
from byrote.core.errors import BadOption
from byrote.core.json.codec import PAYLOAD_MAX, pack
from byrote.core.policy import ONCE, Retry
from byrote.core.unique import UniqueKey, check_key

NAME_MAX = 200
LABELS_MAX = 32
TIMEOUT_MAX = timedelta(days=30)

_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.:/-]*[A-Za-z0-9_])?")

_TRACE = re.compile(r"[!-~]{1,100}")


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """When, where and how often a spec is tried; not part of its hash."""

    queue: str = "default"
    priority: int = 0
    """-100 to 100, higher first."""
    run_after: datetime | timedelta | None = None
    """A moment, or a delay by the database's clock."""
    timeout: timedelta | None = None
    retry: Retry = ONCE
    labels: Mapping[str, str] | None = None
    traceparent: str | None = None
    unique_key: str | None = None
    """While a run with it is unfinished, its task accepts no other with the same one."""

    def __post_init__(self) -> None:
        check_name("queue", self.queue)
        if type(self.priority) is not int or not -100 <= self.priority <= 100:
            raise BadOption(
                f"A priority is a whole number from -100 to 100, not {self.priority!r}."
            )
        if isinstance(self.run_after, str | int | float | timedelta):
            msgspec.structs.force_setattr(self, "run_after", duration(self.run_after))
        if isinstance(self.run_after, datetime) and self.run_after.tzinfo is None:
            raise BadOption(
                "run_after has no time zone; send an aware datetime or a delay like '10m'."
            )
        if self.timeout is not None:
            msgspec.structs.force_setattr(self, "timeout", _timeout(self.timeout))
        if not isinstance(self.retry, Retry):
            raise BadOption(f"retry is a Retry, such as Retry(attempts=5), not {self.retry!r}.")
        if self.labels is not None:
            _check_labels(self.labels)
        if self.traceparent is not None and not _TRACE.fullmatch(self.traceparent):
            raise BadOption(
                "traceparent is up to 100 printable ASCII characters, as in W3C headers."
            )
        if self.unique_key is not None:
            check_key(self.unique_key)


class DeliveryOptions(TypedDict, total=False):
    """The fields of Delivery as callers may write them."""

    queue: str
    """The queue that the run waits in."""
    priority: int
    """-100 to 100; in a queue, higher ones run first."""
    run_after: datetime | DurationLike | None
    """Not before this moment, with a time zone, or not before this delay has passed."""
    timeout: DurationLike | None
    """How long one attempt may take; None: no limit."""
    retry: Retry
    """How often the run is tried."""
    labels: Mapping[str, str] | None
    """Texts to find runs by, and for hooks: `ctx.labels`."""
    traceparent: str | None
    """The W3C trace context of the caller."""
    unique_key: UniqueKey | None
    """While a run of the task with this key is unfinished, `enqueue` returns that run. A text, or a
    function of the task's arguments that returns it."""


_OPTIONS = frozenset(DeliveryOptions.__annotations__)


def check_options(options: Iterable[str], *others: str) -> None:
    """Raise BadOption for an option that neither Delivery nor `others` have."""
    unknown = next((o for o in options if o not in _OPTIONS and o not in others), None)
    if unknown is None:
        return
    # An error path only: importing difflib takes longer than the check.
    from difflib import get_close_matches  # noqa: PLC0415

    known = sorted({*_OPTIONS, *others})
    near = get_close_matches(unknown, known, 1)
    advice = f"did you mean {near[0]!r}?" if near else f"the options are {', '.join(known)}."
    raise BadOption(f"There is no option {unknown!r}; {advice}")


class Spec(msgspec.Struct, frozen=True):
    """Immutable description of one piece of work, and how to deliver it."""

    task: str
    """The name of the task."""
    version: int
    """The version of the task."""
    text: str
    """The identity as JSON text, verbatim: what is stored, delivered and hashed."""
    digest: bytes
    """SHA-256 of the identity's canonical form."""
    delivery: Delivery
    """When, where and how often it is tried; not part of the hash."""

    def using(self, **delivery: Unpack[DeliveryOptions]) -> "Spec":
        """Return the same spec with other fields of Delivery."""
        check_options(delivery)
        changed = msgspec.structs.replace(self.delivery, **delivery)
        return msgspec.structs.replace(self, delivery=changed)


def describe(
    task: str,
    version: int,
    args: list[Any],
    kwargs: dict[str, Any],
    *,
    delivery: Delivery,
    limit: int = PAYLOAD_MAX,
) -> Spec:
    """Returns a spec. Raises BadPayload for values that would not arrive exactly as sent."""
    packed = pack({"task": task, "version": version, "args": args, "kwargs": kwargs}, limit=limit)
    return Spec(task, version, packed.text, packed.digest, delivery)


def check_name(what: str, name: object) -> str:
    """Returns the name of a task, queue or worker if it is short and safe in a shell or a URL."""
    if not isinstance(name, str) or len(name) > NAME_MAX or not _NAME.fullmatch(name):
        raise BadOption(
            f"{name!r} is not a {what} name: use up to {NAME_MAX} letters, digits and '_.:/-', "
            "beginning and ending with a letter, a digit or '_'."
        )
    return name


def _timeout(value: timedelta | str | float) -> timedelta:
    timeout = duration(value)
    if not timedelta(milliseconds=1) <= timeout <= TIMEOUT_MAX:
        shown = f"{timeout.total_seconds():g} s" if isinstance(value, timedelta) else repr(value)
        raise BadOption(f"A timeout is between 1 ms and 30 days, not {shown}.")
    return timeout


def _check_labels(labels: Mapping[str, str]) -> None:
    if len(labels) > LABELS_MAX:
        raise BadOption(f"At most {LABELS_MAX} labels; {len(labels)} were given.")
    for key, value in labels.items():
        if not (isinstance(key, str) and isinstance(value, str)) or len(key) + len(value) > 500:
            raise BadOption("Labels map short strings to short strings (500 characters together).")
        if "\x00" in key + value or not (key + value).isprintable():
            raise BadOption(f"The label {key!r} holds characters that cannot be printed.")
