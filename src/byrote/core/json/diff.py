# SPDX-License-Identifier: MIT
"""Differences between two JSON values, as JSON Pointers (RFC 6901) with old and new.

Two values are the same exactly when their canonical forms are, so when their hashes are: `1` and
`1.0` are, `1` and `true` are not. Lists are compared item by item, without the ends they share:
an item inserted at the front is one addition, not a change of every item. The path of something
removed counts in the old value, every other path in the new one.
"""

from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec

from byrote.core.json.canonical import canonical

CHANGES_MAX: Final = 100

type _Pair = tuple[str, Any, Any]


class _Missing:
    """Stands for an absent value; None is a value."""


MISSING: Final = _Missing()


class Change(msgspec.Struct, frozen=True):
    """One difference between two values, and its path."""

    path: str
    """A JSON Pointer; empty for the whole value."""
    kind: Literal["added", "removed", "changed"]
    old: Any = None
    new: Any = None


class Changes(msgspec.Struct, frozen=True):
    """Where two values differ, in document order."""

    changes: list[Change]
    cut: bool = False
    """Whether there are more than are listed."""

    def __bool__(self) -> bool:
        return bool(self.changes)


def diff(old: Any, new: Any, *, limit: int = CHANGES_MAX) -> Changes:
    """Every difference between two JSON values, up to a limit; none means the same hash."""
    found: list[Change] = []
    # A stack and not recursion: values may be nested 500 levels deep.
    stack: list[_Pair] = [("", old, new)]
    while stack:
        path, was, now = stack.pop()
        if type(was) is dict and type(now) is dict:
            stack.extend(reversed(list(_members(path, was, now))))
        elif type(was) is list and type(now) is list:
            stack.extend(reversed(list(_items(path, was, now))))
        elif not same(was, now):
            if len(found) == limit:
                return Changes(found, cut=True)
            found.append(_change(path, was, now))
    return Changes(found)


def same(old: Any, new: Any) -> bool:
    """Whether two JSON values have the same canonical form."""
    stack = [(old, new)]
    while stack:
        was, now = stack.pop()
        if type(was) is dict and type(now) is dict:
            if was.keys() != now.keys():
                return False
            stack.extend((value, now[key]) for key, value in was.items())
        elif type(was) is list and type(now) is list:
            if len(was) != len(now):
                return False
            stack.extend(zip(was, now, strict=True))
        elif not _same_leaf(was, now):
            return False
    return True


def _same_leaf(old: Any, new: Any) -> bool:
    if type(old) is type(new):
        return bool(old == new)
    numbers = {int, float}
    return type(old) in numbers and type(new) in numbers and canonical(old) == canonical(new)


def pointer(path: str, step: str | int) -> str:
    """The path one step further down."""
    return f"{path}/{str(step).replace('~', '~0').replace('/', '~1')}"


def _change(path: str, was: Any, now: Any) -> Change:
    if was is MISSING:
        return Change(path, "added", new=now)
    if now is MISSING:
        return Change(path, "removed", old=was)
    return Change(path, "changed", was, now)


def _members(path: str, was: dict[str, Any], now: dict[str, Any]) -> Iterator[_Pair]:
    for key in sorted({*was, *now}):
        yield pointer(path, key), was.get(key, MISSING), now.get(key, MISSING)


def _items(path: str, was: list[Any], now: list[Any]) -> Iterator[_Pair]:
    least = min(len(was), len(now))
    head = next((i for i in range(least) if not same(was[i], now[i])), least)
    least -= head
    tail = next((i for i in range(least) if not same(was[~i], now[~i])), least)
    olds, news = was[head : len(was) - tail], now[head : len(now) - tail]
    for i in range(max(len(olds), len(news))):
        yield (
            pointer(path, head + i),
            olds[i] if i < len(olds) else MISSING,
            news[i] if i < len(news) else MISSING,
        )
