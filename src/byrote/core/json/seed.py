# SPDX-License-Identifier: MIT
"""Numbers and ids derived from a run, or from its spec, in a way any language can repeat.

Everything is derived from one digest of 32 bytes per run. By default it is that of the run's id,
so every attempt and every replay of a run draws the same numbers, and two runs with the same
arguments draw different ones. A task with `seed="spec"` uses the hash of the spec instead.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Literal

from byrote.core.errors import BadOption

type SeedFrom = Literal["run", "spec"]
"""Digests that seed the random numbers of a task."""

SEED_BITS = 53
"""As many as a JSON number holds exactly everywhere."""
SEED_LABEL = "byrote.seed"
"""The label of a run that repeats another one: the id of the run whose seed it has."""


def check_seed(value: object) -> SeedFrom:
    """The value of the option `seed`; BadOption if it is neither 'run' nor 'spec'."""
    if value == "run" or value == "spec":  # noqa: PLR1714 -- mypy narrows this form only.
        return value
    raise BadOption(f"A task's seed is 'run' (the default) or 'spec', not {value!r}.")


def run_digest(run_id: str, labels: Mapping[str, str] | None = None) -> bytes:
    """The digest of a run: SHA-256 of "run" and its id, or that of the run it repeats."""
    return sha256(b"run" + (labels or {}).get(SEED_LABEL, run_id).lower().encode()).digest()


def seed_of(digest: bytes) -> int:
    """The first 53 bits of a digest."""
    return int.from_bytes(digest[:8]) >> 64 - SEED_BITS


def step_digest(digest: bytes, number: int) -> bytes:
    """The digest inside a step, so that its draws do not depend on what is drawn elsewhere."""
    return sha256(digest + b"step" + number.to_bytes(4)).digest()


def place_digest(digest: bytes, place: str) -> bytes:
    """The digest inside the step at a place: its number, or a branch and the number in it."""
    if place.isdecimal():
        return step_digest(digest, int(place))
    return sha256(digest + b"step" + place.encode()).digest()


def uuid_bits(digest: bytes, number: int) -> int:
    """The 128 bits of the UUID (version 8) with this number, from 0."""
    noise = int.from_bytes(sha256(digest + number.to_bytes(8)).digest()[:16])
    return noise & ~(0xF << 76) & ~(0x3 << 62) | 0x8 << 76 | 0x2 << 62
