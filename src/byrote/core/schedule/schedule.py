# SPDX-License-Identifier: MIT
"""Periodic tasks: their specs, their timings, and the runs of ticks that are due.

A tick is one due moment of a schedule. The id of its run is derived from the schedule's name and
that moment, so however many beats there are, a tick has one run.
"""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, TypedDict

import msgspec

from byrote.core.duration import duration, micros, spoken
from byrote.core.errors import BadOption
from byrote.core.policy import ONCE, Retry
from byrote.core.schedule.timing import EPOCH, latest_tick, ticks_after, timing_of
from byrote.core.spec import LABELS_MAX, Delivery, Spec, check_name
from byrote.core.text.ids import uuid7

SCHEDULE_NAME_MAX: Final = 150
TICKS_MAX: Final = 100
"""Runs of one schedule that one turn may enqueue; the next turn enqueues the rest."""
LATE: Final = timedelta(minutes=1)
"""A tick older than this was missed."""
JITTER_MAX: Final = timedelta(days=1)
TICK_LABELS: Final = ("schedule", "tick")
"""Labels that a tick's run has besides its own: the schedule's name, and the due moment."""

type CatchUp = Literal["one", "all", "none"]
"""Ticks that were missed while no beat was running: run the latest, all of them, or none."""


class Timing(TypedDict, total=False):
    """When and how a spec runs periodically."""

    cron: str
    """Five fields: minute, hour, day, month, weekday."""
    every: timedelta | str | float
    """An interval, aligned to the Unix epoch."""
    at: datetime
    """A single moment, with a time zone."""
    zone: str
    """The time zone of `cron`, such as `Europe/Berlin`; default: UTC."""
    jitter: timedelta | str | float
    """Delay each run by up to this duration."""
    overlap: bool
    """Start a run while an earlier one is unfinished."""
    catch_up: CatchUp
    """Which of the ticks missed without a worker to run: `one` (the default), `all` or `none`."""


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A spec and its timing; flat, as it is stored."""

    name: str
    timing: str
    zone: str = "UTC"
    task: str
    version: int
    spec_json: str
    spec_hash: str
    queue: str = "default"
    priority: int = 0
    max_attempts: int = 1
    timeout_ms: int | None = None
    retry_json: str | None = None
    labels: dict[str, str] | None = None
    unique_key: str | None = None
    """No new run is enqueued while another with this key is unfinished."""
    jitter_us: int = 0
    catch_up: CatchUp = "one"

    @property
    def overlap(self) -> bool:
        """Whether a run may be accepted while an earlier one is unfinished."""
        return self.unique_key is None

    @property
    def delivery(self) -> Delivery:
        """The delivery of a run that a person starts by hand."""
        return Delivery(
            queue=self.queue,
            priority=self.priority,
            timeout=None if self.timeout_ms is None else timedelta(milliseconds=self.timeout_ms),
            retry=ONCE
            if self.retry_json is None
            else msgspec.json.decode(self.retry_json, type=Retry),
            labels={**(self.labels or {}), "schedule": self.name},
            unique_key=self.unique_key,
        )

    @property
    def spec(self) -> Spec:
        """The spec of a run that a person starts by hand."""
        digest = bytes.fromhex(self.spec_hash)
        return Spec(self.task, self.version, self.spec_json, digest, self.delivery)

    @property
    def digest(self) -> str:
        """Hash of the definition: it differs if any field does."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()


class StoredSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as the database has it."""

    schedule: Schedule
    origin: Literal["code", "hand"]
    """Whether a worker's app defines it, or only a person."""
    next_at: datetime | None
    """The next tick; None when there will be none."""
    last_at: datetime | None
    """The latest tick that had a run."""
    last_run: str | None
    runs: int
    skipped: int
    """Ticks without a run, since an earlier one was unfinished."""
    paused_at: datetime | None
    fault: str | None
    """Why it was paused, if a fault paused it and not a person."""
    changed_at: datetime
    now: datetime
    """The database's time when it was read."""

    @property
    def state(self) -> Literal["on", "paused", "fault", "over"]:
        """Whether it ticks, and if not, why, in a word."""
        if self.fault is not None:
            return "fault"
        if self.paused_at is not None:
            return "paused"
        return "over" if self.next_at is None else "on"


class Tick(msgspec.Struct, frozen=True):
    """One due moment and its run."""

    name: str
    id: str
    at: datetime
    due: datetime
    """When the run may start: the moment itself, or a little later by the schedule's jitter."""


class ScheduleMove(msgspec.Struct, frozen=True):
    """The ticks of a schedule that is due, and its next moment."""

    name: str
    expected: datetime
    """The moment it was due; if another beat advanced the schedule since, nothing is written."""
    next_at: datetime | None
    ticks: list[Tick]


class TickResult(msgspec.Struct, frozen=True):
    """The result of a tick."""

    name: str
    at: datetime
    id: str
    made: bool
    """False: an earlier run was unfinished, so none was enqueued."""


def make_schedule(
    name: str,
    spec: Spec,
    *,
    cron: str | None = None,
    every: timedelta | str | float | None = None,
    at: datetime | None = None,
    zone: str = "UTC",
    jitter: timedelta | str | float = timedelta(),
    overlap: bool = False,
    catch_up: CatchUp = "one",
) -> Schedule:
    """Returns a schedule. Raises BadOption for invalid or contradictory options."""
    how = spec.delivery
    if how.run_after is not None:
        raise BadOption(
            f"The schedule {name!r} has its own timing; leave run_after out of its spec."
        )
    if how.unique_key is not None and overlap:
        raise BadOption(f"The schedule {name!r} has a unique key, so its runs cannot overlap.")
    if catch_up == "all" and not overlap:
        raise BadOption(f"{name!r}: to catch up on all ticks, its runs must be free to overlap.")
    made = Schedule(
        name=name,
        timing=timing_of(cron=cron, every=every, at=at),
        zone=zone,
        task=spec.task,
        version=spec.version,
        spec_json=spec.text,
        spec_hash=spec.digest.hex(),
        queue=how.queue,
        priority=how.priority,
        max_attempts=how.retry.attempts,
        timeout_ms=_millis(how.timeout),
        retry_json=None if how.retry == ONCE else msgspec.json.encode(how.retry).decode(),
        labels=dict(how.labels) if how.labels else None,
        unique_key=None if overlap else how.unique_key or f"schedule:{name}",
        jitter_us=micros(_jitter(jitter)),
        catch_up=catch_up,
    )
    check_schedule(made)
    return made


def check_schedule(schedule: Schedule) -> None:
    """Raise BadOption for a schedule that could never tick or has an invalid option."""
    check_name("schedule", schedule.name)
    if len(schedule.name) > SCHEDULE_NAME_MAX:
        raise BadOption(f"A schedule's name has up to {SCHEDULE_NAME_MAX} characters.")
    if schedule.catch_up not in ("one", "all", "none"):
        raise BadOption(f"catch_up is 'one', 'all' or 'none', not {schedule.catch_up!r}.")
    if not 0 <= schedule.jitter_us <= micros(JITTER_MAX):
        raise BadOption(f"A jitter is between 0 and {spoken(JITTER_MAX)}.")
    labels = schedule.labels or {}
    taken = [label for label in TICK_LABELS if label in labels]
    if taken:
        raise BadOption(f"The label {taken[0]!r} is the schedule's own; choose another.")
    if len(labels) + len(TICK_LABELS) > LABELS_MAX:
        raise BadOption(f"A schedule's spec has at most {LABELS_MAX - len(TICK_LABELS)} labels.")
    if next_tick(schedule, after=EPOCH) is None:
        raise BadOption(f"{schedule.timing!r} never comes.")


def _jitter(value: timedelta | str | float) -> timedelta:
    try:
        return duration(value)
    except ValueError as error:
        raise BadOption(str(error)) from None


def _millis(length: timedelta | None) -> int | None:
    return None if length is None else max(length // timedelta(milliseconds=1), 1)


def next_tick(schedule: Schedule, *, after: datetime) -> datetime | None:
    """The first tick after a moment; None when there is none."""
    return next(ticks_after(schedule.timing, schedule.zone, after), None)


def turn_of(planned: StoredSchedule) -> ScheduleMove:
    """Returns the ticks of a schedule that is due, and when it is due next."""
    schedule, now, first = planned.schedule, planned.now, planned.next_at
    if first is None or first > now:
        raise BadOption(f"The schedule {schedule.name!r} is not due.")
    moments, following = _due(schedule, first, now)
    ticks = [tick_of(schedule, moment) for moment in moments]
    return ScheduleMove(schedule.name, first, following, ticks)


def _due(
    schedule: Schedule, first: datetime, now: datetime
) -> tuple[list[datetime], datetime | None]:
    """Returns the ticks until now that get a run, and the next tick."""
    if schedule.catch_up == "all":
        moments = [first]
        for moment in ticks_after(schedule.timing, schedule.zone, first):
            if moment > now or len(moments) == TICKS_MAX:
                return moments, moment
            moments.append(moment)
        return moments, None
    latest = latest_tick(schedule.timing, schedule.zone, first=first, now=now)
    missed = schedule.catch_up == "none" and now - latest > LATE
    return [] if missed else [latest], next_tick(schedule, after=max(latest, now))


def tick_of(schedule: Schedule, moment: datetime) -> Tick:
    """Returns the tick of a schedule at a moment; the same in every process."""
    noise = hashlib.sha256(f"{schedule.name} {moment.astimezone(UTC).isoformat()}".encode())
    later = schedule.jitter_us * int.from_bytes(noise.digest()[16:24]) // 2**64
    digits = noise.hexdigest()
    run_id = uuid7(micros(moment - EPOCH) // 1000, digits[:3], digits[3:19])
    return Tick(schedule.name, run_id, moment, moment + timedelta(microseconds=later))


def row_of(schedule: Schedule) -> dict[str, Any]:
    """Returns a schedule as the parameters of its statements."""
    row = msgspec.structs.asdict(schedule)
    row["hash"] = bytes.fromhex(row.pop("spec_hash"))
    row["labels"] = (
        None if schedule.labels is None else msgspec.json.encode(schedule.labels).decode()
    )
    return row
