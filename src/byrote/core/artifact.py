# SPDX-License-Identifier: MIT
"""Names, size limits and metadata of artifacts."""

import re
from datetime import datetime
from typing import Final

import msgspec

from byrote.core.errors import ByroteError

NAME_MAX: Final = 200
INLINE_MAX: Final = 1 << 20
"""Bytes up to which an artifact is stored in PostgreSQL."""
SIZE_MAX: Final = 1 << 30
COUNT_MAX: Final = 1_000
"""Artifacts of one run, over all its attempts."""
CONTENT_LOCKED: Final = (
    "Another transaction has locked the stored content of this artifact; send it again."
)
POSTGRES: Final = "postgres"
"""Where a small artifact is stored; for any other, `location` is a URL."""

# No part begins with a dot, so a name is never a hidden file nor a way up the tree.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_MEDIA = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9*][a-z0-9!#$&^_.+-]*(;[ -~]*)?")


class ArtifactRefused(ByroteError, ValueError):
    """An artifact was not stored; the message has the reason and what to do."""

    code = "artifact_refused"


class ArtifactDamaged(ByroteError):
    """The stored content does not match its hash."""

    code = "artifact_damaged"


class UnknownArtifact(ByroteError, LookupError):
    """The artifact does not exist, or its content is missing from its store."""

    code = "unknown_artifact"


class ArtifactEntry(msgspec.Struct, frozen=True):
    """One row: the attempt, the name, and where the content is stored."""

    run_id: str
    attempt: int
    name: str
    hash: str
    size: int
    media_type: str
    location: str
    at: datetime


def check_artifact(name: object, media_type: object) -> None:
    """Raise ArtifactRefused for a name or media type that is unsafe in a shell or a URL."""
    if not isinstance(name, str) or len(name) > NAME_MAX or not _NAME.fullmatch(name):
        raise ArtifactRefused(
            f"{name!r} is not an artifact name: use up to {NAME_MAX} letters, digits and '_.-', in "
            "parts separated by '/', none of which begins with '.' or '-'."
        )
    if not isinstance(media_type, str) or len(media_type) > 200 or not _MEDIA.fullmatch(media_type):
        raise ArtifactRefused(f"{media_type!r} is not a media type; write one like 'text/csv'.")


def too_large(limit: int) -> ArtifactRefused:
    """The refusal of an artifact over the limit."""
    return ArtifactRefused(
        f"The artifact has more than {limit:,} bytes. Raise the setting artifact_max, or store "
        "the data elsewhere and return a reference to it."
    )
