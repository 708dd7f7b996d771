# SPDX-License-Identifier: MIT
"""Numbers and ids that follow from a spec's hash, in a way any language can repeat."""

from hashlib import sha256

SEED_BITS = 53
"""As many as a JSON number holds exactly everywhere."""


def seed_of(digest: bytes) -> int:
    """The seed of every run of this spec: the first 53 bits of its hash."""
    return int.from_bytes(digest[:8]) >> 64 - SEED_BITS


def step_digest(digest: bytes, number: int) -> bytes:
    """What stands for the spec's hash inside a step: its draws are its own, whoever else draws."""
    return sha256(digest + b"step" + number.to_bytes(4)).digest()


def uuid_bits(digest: bytes, number: int) -> int:
    """The 128 bits of a spec's UUID (version 8) with this number, from 0."""
    noise = int.from_bytes(sha256(digest + number.to_bytes(8)).digest()[:16])
    return noise & ~(0xF << 76) & ~(0x3 << 62) | 0x8 << 76 | 0x2 << 62
