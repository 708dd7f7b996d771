# SPDX-License-Identifier: MIT
"""Identifiers made of digits and digests: UUIDs, and the digest that stands for a token."""

import re
from hashlib import sha256

_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)


def is_uuid(text: str) -> bool:
    """Whether a text is a UUID, with or without dashes."""
    return isinstance(text, str) and _UUID.fullmatch(text) is not None


def dashed(digits: str) -> str:
    """Thirty-two hexadecimal digits in the form of a UUID."""
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def shortened(run_id: str) -> str:
    """The beginning of a run's id, long enough to distinguish runs; commands accept it.

    It is the moment to a quarter of a microsecond: the first 8 digits are those of a minute.
    """
    return run_id[:18]


def uuid7(millis: int, fraction: str, noise: str) -> str:
    """A UUIDv7 of a moment, three hexadecimal digits, and sixteen that make it unique."""
    head = f"{millis:012x}"
    variant = "89ab"[int(noise[0], 16) & 3]
    return f"{head[:8]}-{head[8:]}-7{fraction}-{variant}{noise[1:4]}-{noise[4:]}"


def token_digest(secret: str) -> bytes:
    """Return the hash of a service's token, as the database stores it."""
    return sha256(secret.encode()).digest()
