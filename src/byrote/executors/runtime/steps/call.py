# SPDX-License-Identifier: MIT
"""A call of a step, a sleep or a wait, and the entry of the ledger that answers it."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from hashlib import sha256
from typing import Any, NamedTuple

from byrote.core.errors import BadOption, BadPayload
from byrote.core.json.codec import pack
from byrote.core.json.exact import exact_form
from byrote.core.replay.withholding import withholding
from byrote.executors.runtime.output import current_scope, open_scope, reset_scope

NAME_MAX = 200
ARGS_MAX = 256 * 1024
"""Bytes of JSON of a step's arguments that are hashed."""

STEP, SLEEP, EVENT = "step", "sleep", "event"
RAISED, FAILED = "raised", "failed"
"""A step whose function raised: as a replay reads it, and as a later attempt does."""
END = "the end of the task"

_inside: ContextVar[str] = ContextVar("byrote_inside_a_step", default="")
current_step = _inside.get
"""The place of the step whose function is calling; empty outside of steps."""


class StepCall:
    """A call that a task makes: its place, kind and name, and the hash of its arguments."""

    __slots__ = ("args", "kind", "name", "place", "sequence")

    def __init__(
        self, place: str, kind: str, name: str, *, args: str | None = None, sequence: int = 0
    ) -> None:
        self.place = place
        self.kind = kind
        self.name = name
        self.args = args
        self.sequence = sequence
        """The number of its entry: at first that of the call in this attempt."""

    @property
    def branched(self) -> bool:
        """Whether an asyncio task that the task has started makes it."""
        return not self.place.isdecimal()

    @property
    def where(self) -> str:
        """The place as text for messages."""
        branch, _, position = self.place.rpartition("/")
        return f"Step {position} of branch {branch}" if branch else f"Step {self.place}"

    def spoken(self) -> str:
        """The call as text for messages."""
        return spoken(self.kind, self.name)

    def fields(self, kind: str) -> dict[str, Any]:
        """The fields of the entry that records this call."""
        fields = {"sequence": self.sequence, "kind": kind, "name": self.name, "place": self.place}
        return fields if self.args is None else fields | {"args_hash": self.args}


class LedgerEntry(NamedTuple):
    """One entry of the ledger."""

    sequence: int
    kind: str
    name: str
    open: bool
    text: str | None
    place: str | None = None
    args: str | None = None

    def fits(self, call: StepCall) -> bool:
        """Whether it is of the same kind and name as a call."""
        kind = STEP if self.kind in (RAISED, FAILED) else self.kind
        return (kind, self.name) == (call.kind, call.name)

    def has_other_args(self, call: StepCall) -> bool:
        """Whether it was called with other arguments; False if that is unknown."""
        return self.args is not None and call.args is not None and self.args != call.args

    def spoken(self) -> str:
        """The entry as text for messages."""
        return spoken(self.kind, self.name)


def args_hash(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """The hash of a step's arguments in their exact form, as hexadecimal digits.

    None for arguments that JSON does not represent exactly, or that are too large to hash.
    """
    try:
        packed = pack([list(args), dict(kwargs)], limit=ARGS_MAX)
    except BadPayload:
        return None
    held = withholding()
    if held is not None and any(run_id in packed.text for run_id in held.ids):
        return None  # The original was called with the id of a real run.
    return sha256(exact_form(args, kwargs)).hexdigest()


@contextlib.contextmanager
def within(place: str) -> Iterator[None]:
    """Context manager around the function of the step at this place."""
    # Numbers drawn in a step must not change later ones: later attempts do not call it.
    token, scope = _inside.set(place), current_scope()
    opened = (
        open_scope(scope.within(place)) if scope is not None and scope.job is not None else None
    )
    try:
        yield
    finally:
        _inside.reset(token)
        if opened is not None:
            reset_scope(opened)


def spoken(kind: str, name: str) -> str:
    """A kind and a name as text for messages."""
    words = {SLEEP: "a sleep", EVENT: f"a wait for {name!r}"}
    return words.get(kind, f"step {name!r}")


def check_name(name: str) -> None:
    """Raise BadOption for a text that cannot name a step, an event or an effect."""
    if not isinstance(name, str) or not 1 <= len(name) <= NAME_MAX or not name.isprintable():
        raise BadOption(f"A name has 1 to {NAME_MAX} printable characters, not {name!r:.80}.")
