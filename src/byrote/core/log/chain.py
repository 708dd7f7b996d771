# SPDX-License-Identifier: MIT
"""The head of the chain of the event log, and what a head that was kept elsewhere proves.

Each link of the chain is a hash over the link before it and a stretch of the log, so one hash
stands for everything up to it. The database alone cannot prove that its last links are still
there: a chain without them is a shorter, sound chain. A head that was kept outside can.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePath
from typing import Final

import msgspec

from byrote.core.errors import BadOption
from byrote.core.log.findings import Finding

FORM: Final = 1
"""The version of a kept head's form."""


class Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The last link of the chain: its number, its hash in hex, and when it was made."""

    link: int
    hash: str
    linked_at: datetime
    chain_head: int = FORM


class Chained(msgspec.Struct, frozen=True, kw_only=True):
    """What the database has of the chain."""

    head: Head | None
    """None if there is no link."""
    noted: int | None
    """The number of the last link, as the duty that adds links has noted it."""
    first: int | None
    """The number of the first link that retention has left."""
    there: str | None
    """The hash of the link whose number the kept head has."""
    unchained: int
    """Events after the last link."""


def read_head(text: bytes, name: PurePath) -> Head:
    """Parse a kept head. Raises BadOption, with the file's name, for anything else."""
    try:
        head = msgspec.json.decode(text, type=Head)
        sound = len(bytes.fromhex(head.hash)) == 32 and head.link > 0 and head.chain_head == FORM
    except (msgspec.DecodeError, ValueError) as error:
        raise BadOption(f"{name} does not hold the head of a chain: {error}.") from None
    if not sound:
        raise BadOption(
            f"{name} does not hold the head of a chain in form {FORM}: a link's number from 1 on "
            "and the 64 hex digits of its hash."
        )
    return head


def written_head(head: Head) -> bytes:
    """The text of a head to be kept, which `read_head` reads."""
    return msgspec.json.format(msgspec.json.encode(head), indent=2) + b"\n"


def judge_chain(chained: Chained, kept: Head | None) -> Iterator[Finding]:
    """What is missing at the end of the chain, by the duty's note and by a head that was kept."""
    last = 0 if chained.head is None else chained.head.link
    if chained.noted is not None and chained.noted > last:
        yield Finding("chain", f"{_links(last + 1, chained.noted)} taken out after they were made")
    if kept is None:
        return
    what = f"the kept head (link {kept.link} of {kept.linked_at:%Y-%m-%dT%H:%M:%SZ})"
    if kept.link > last:
        said = f"{_links(last + 1, kept.link)} taken out since {what}, or this is an older copy"
        yield Finding("chain", said)
    elif chained.there is None and chained.first is not None and kept.link < chained.first:
        yield Finding(
            "chain",
            f"{what} cannot be compared: links before {chained.first} went with their events. "
            "Compare more often than events are dropped; remove the file to begin anew",
        )
    elif chained.there != kept.hash:
        yield Finding("chain", f"{what} is not in the chain: it was made anew since")


def _links(first: int, last: int) -> str:
    return f"link {last} was" if first == last else f"links {first} to {last} were"
