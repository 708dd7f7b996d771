# SPDX-License-Identifier: MIT
"""The only source of randomness: ids, tokens and jitter."""

import os
import random
import socket
import threading
import time
from base64 import urlsafe_b64encode

from byrote.core.text.ids import dashed, uuid7

jitter = random.SystemRandom().random

_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """Return a UUIDv7: known before the insert, ordered by time even within a millisecond."""
    global _last  # noqa: PLW0603 -- one counter per process is the point.
    now = time.time_ns()
    # 48 bits of milliseconds, then 12 bits of their fraction: ids of one process always increase.
    stamp = (now // 1_000_000 << 12) | (now % 1_000_000 * 4096 // 1_000_000)
    with _lock:
        _last = stamp = max(stamp, _last + 1)
    return uuid7(stamp >> 12, f"{stamp & 0xFFF:03x}", os.urandom(8).hex())


def new_ids(count: int) -> list[str]:
    """Return many ids at once, in increasing order."""
    global _last  # noqa: PLW0603 -- one counter per process is the point.
    now = time.time_ns()
    stamp = (now // 1_000_000 << 12) | (now % 1_000_000 * 4096 // 1_000_000)
    with _lock:
        first = max(stamp, _last + 1)
        _last = first + count
    noise = os.urandom(8 * count).hex()
    return [
        uuid7(stamp >> 12, f"{stamp & 0xFFF:03x}", noise[16 * i : 16 * i + 16])
        for i, stamp in enumerate(range(first, first + count))
    ]


def new_token() -> str:
    """Return 128 random bits in the form of a UUID: the token of a lease."""
    return dashed(os.urandom(16).hex())


def new_secret() -> str:
    """Return a token for the service: 256 random bits after a prefix that secret scanners find."""
    return "byr_" + urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")


def worker_id() -> str:
    """Return a worker id, unique for every start of a process."""
    host = (
        "".join(c if c.isalnum() else "-" for c in socket.gethostname())[:40].strip("-") or "host"
    )
    return f"{host}-{os.getpid()}-{os.urandom(6).hex()}"
