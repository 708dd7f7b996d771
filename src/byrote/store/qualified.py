# SPDX-License-Identifier: MIT
"""Qualifies the names of our tables, views, sequences and functions with their schema.

On its own connections, Byrote sets the search path, and statements are sent as they are in
`sql/`. On a connection of a caller, a pool or a pooler it must not: there every name is written
with its schema, so that neither the search path nor a temporary table decides what it means. The
functions of the schema do the same in their bodies (`byrote_home` in the migrations).
"""

import re
from functools import cache
from importlib.resources import files

_CREATED = re.compile(
    rb"create (?:table|view|function|sequence) (?:if not exists )?(?:byrote_home\.)?(byrote_\w+)"
)
_TOKEN = re.compile(rb"--[^\n]*|'(?:[^']|'')*'|(?<![\w.])byrote_\w+")
"""A comment or a text, which stay as they are, or a name of ours that has no schema yet."""


@cache
def names() -> frozenset[bytes]:
    """Everything that the migrations create and that a statement can name with a schema."""
    found = {b"byrote_schema"}
    for file in files("byrote.store").joinpath("migrations").iterdir():
        if file.name[:4].isdigit():
            found.update(_CREATED.findall(file.read_bytes()))
    return frozenset(found)


def qualified(text: bytes, schema: bytes) -> bytes:
    """Return SQL in which every name of ours has this schema, an identifier as SQL writes it."""
    ours = names()

    def place(match: re.Match[bytes]) -> bytes:
        token = match[0]
        return schema + b"." + token if token in ours else token

    return _TOKEN.sub(place, text)
