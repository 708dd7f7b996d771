# SPDX-License-Identifier: MIT
"""The head of the event log's hash chain, and the check against a head stored elsewhere.

Each link of the chain is a hash over the link before it and a stretch of the log, so one hash
stands for everything up to it. The database alone cannot prove that its last links are still
there: a chain without them is a shorter, valid chain. A head that is stored outside can.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePath
from typing import Final

import msgspec

from byrote.core.errors import BadOption
from byrote.core.log.findings import Finding

FORM: Final = 1
"""The version of the format of a stored head."""


class Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The last link of the chain: its number, its hash in hex, and when it was made."""

    link: int
    hash: str
    linked_at: datetime
    chain_head: int = FORM


class Chained(msgspec.Struct, frozen=True, kw_only=True):
    """The chain as the database has it."""

    head: Head | None
    """None if the chain has not begun."""
    noted: int | None
    """The number of the last link, as the duty that adds links has noted it."""
    first: int | None
    """The number of the first link that retention has not deleted."""
    there: str | None
    """The hash of the link that has the number of the stored head."""
    unchained: int
    """Events after the last link."""


def read_head(text: bytes, name: PurePath) -> Head:
    """Parse a stored head. Raises BadOption, with the file's name, for anything else."""
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
    """Returns the text of a head, which `read_head` parses."""
    return msgspec.json.format(msgspec.json.encode(head), indent=2) + b"\n"


def judge_chain(chained: Chained, kept: Head | None) -> Iterator[Finding]:
    """Returns findings on missing links, by the duty's note and by a head stored elsewhere."""
    last = 0 if chained.head is None else chained.head.link
    if chained.noted is not None and chained.noted > last:
        yield Finding("chain", f"{_links(last + 1, chained.noted)} taken out after they were made")
    if kept is None:
        return
    what = f"the kept head (link {kept.link} of {kept.linked_at:%Y-%m-%dT%H:%M:%SZ})"
    if kept.link > last:
        missing = _links(last + 1, kept.link)
        yield Finding("chain", f"{missing} taken out since {what}, or this is an older copy")
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
