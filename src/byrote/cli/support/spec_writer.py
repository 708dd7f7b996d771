# SPDX-License-Identifier: MIT
"""Specs out of what people write on a command line."""

import json
from collections.abc import Iterable, Iterator

import msgspec

from byrote.cli.support.task_choice import ChosenTask
from byrote.core.errors import BadPayload, PayloadTooLarge
from byrote.core.json.codec import check_text, digest_of, unpack
from byrote.core.spec import Delivery, Spec


class Writer:
    """Writes specs around JSON texts of the user's, which stay as they are."""

    def __init__(self, task: ChosenTask, args: str, delivery: Delivery, *, limit: int) -> None:
        check_args(args)
        self._task = task
        self._args = args
        self._delivery = delivery
        self._limit = limit
        name, version = json.dumps(task.name), task.version
        self._head = f'{{"task":{name},"version":{version},"args":{args},"kwargs":'

    def spec(self, kwargs: str) -> Spec:
        """The spec with these keyword arguments."""
        # Checked on its own first, so that it cannot extend beyond its part of the text.
        check_kwargs(kwargs)
        text = f"{self._head}{kwargs}}}"
        size = len(text.encode())
        if size > self._limit:
            raise PayloadTooLarge(size, self._limit)
        task, delivery = self._task, self._delivery
        if task.check is not None:
            key = task.check(unpack(self._args), unpack(kwargs))
            if delivery.unique_key is None:
                delivery = msgspec.structs.replace(delivery, unique_key=key)
        spec = Spec(task.name, task.version, text, digest_of(text), delivery)
        return spec if task.prepare is None else task.prepare(spec)

    def lines(self, source: Iterable[bytes]) -> Iterator[Spec]:
        """A spec for each line of a file."""
        for number, line in enumerate(source, 1):
            if not line.strip():
                continue
            try:
                yield self.spec(_text(line))
            except BadPayload as error:
                raise BadPayload(f"line {number}, {error.path}", error.reason) from None


def check_args(args: str) -> None:
    """Raise BadPayload for positional arguments that are not a JSON array."""
    _check("--args", args, opening="[", expected='an array such as ["a", 1]')


def check_kwargs(kwargs: str) -> None:
    """Raise BadPayload for keyword arguments that are not a JSON object."""
    _check("JSON", kwargs, opening="{", expected='an object such as {"name": "value"}')


def _text(line: bytes) -> str:
    try:
        return line.rstrip(b"\r\n").decode()
    except UnicodeDecodeError:
        raise BadPayload("$", "This is not valid UTF-8; send UTF-8.") from None


def _check(what: str, text: str, *, opening: str, expected: str) -> None:
    if not text.lstrip(" \t\r\n").startswith(opening):
        raise BadPayload("$", f"{what} must be {expected}.")
    check_text(text)
