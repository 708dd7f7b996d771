# SPDX-License-Identifier: MIT
"""A lease out of thin air, for what needs no database."""

from typing import Any

import msgspec

from byrote.core.run import Leased

PLAIN = Leased(
    id="01a1e0f7-8a29-7eea-8c71-1a986ee4dea1",
    queue="default",
    task="t",
    version=1,
    spec_json="{}",
    attempt=1,
    charged=0,
    losses=0,
    max_attempts=1,
    timeout_ms=None,
    retry_json=None,
    labels_json=None,
    traceparent=None,
    spec_hash=bytes(32),
    rank=0,
    age_us=0,
    as_of_us=0,
    token="token",  # noqa: S106
    deadline=0.0,
)


def leased(**changed: Any) -> Leased:
    """A lease that differs from a plain one in this."""
    return msgspec.structs.replace(PLAIN, **changed)
