# SPDX-License-Identifier: MIT
"""Specs out of what people write on a command line."""

import json
from collections.abc import Iterable, Iterator

from byrote.core.errors import BadPayload, PayloadTooLarge
from byrote.core.json.codec import check_text, digest_of
from byrote.core.spec import Delivery, Spec


class Writer:
    """Writes specs around JSON texts of the user's, which stay as they are."""

    def __init__(
        self, task: str, version: int, args: str, delivery: Delivery, *, limit: int
    ) -> None:
        _check("--args", args, opening="[", expected='an array such as ["a", 1]')
        self._task = task
        self._version = version
        self._delivery = delivery
        self._limit = limit
        self._head = f'{{"task":{json.dumps(task)},"version":{version},"args":{args},"kwargs":'

    def spec(self, kwargs: str) -> Spec:
        """The spec with these keyword arguments."""
        # Checked on its own first, so that it cannot extend beyond its part of the text.
        _check("JSON", kwargs, opening="{", expected='an object such as {"name": "value"}')
        text = f"{self._head}{kwargs}}}"
        size = len(text.encode())
        if size > self._limit:
            raise PayloadTooLarge(size, self._limit)
        return Spec(self._task, self._version, text, digest_of(text), self._delivery)

    def lines(self, source: Iterable[bytes]) -> Iterator[Spec]:
        """A spec for each line of a file."""
        for number, line in enumerate(source, 1):
            if not line.strip():
                continue
            try:
                yield self.spec(_text(line))
            except BadPayload as error:
                raise BadPayload(f"line {number}, {error.path}", error.reason) from None


def _text(line: bytes) -> str:
    try:
        return line.rstrip(b"\r\n").decode()
    except UnicodeDecodeError:
        raise BadPayload("$", "This is not valid UTF-8; send UTF-8.") from None


def _check(what: str, text: str, *, opening: str, expected: str) -> None:
    if not text.lstrip(" \t\r\n").startswith(opening):
        raise BadPayload("$", f"{what} must be {expected}.")
    check_text(text)
