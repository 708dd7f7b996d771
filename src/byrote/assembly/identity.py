# SPDX-License-Identifier: MIT
"""The only source of randomness: ids, tokens and jitter."""

import os
import random
import socket
import threading
import time
from base64 import urlsafe_b64encode

chance = random.SystemRandom().random

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
    return _uuid7(stamp, os.urandom(8))


def new_ids(count: int) -> list[str]:
    """Return many ids at once, in increasing order."""
    global _last  # noqa: PLW0603 -- one counter per process is the point.
    now = time.time_ns()
    stamp = (now // 1_000_000 << 12) | (now % 1_000_000 * 4096 // 1_000_000)
    with _lock:
        first = max(stamp, _last + 1)
        _last = first + count
    noise = os.urandom(8 * count)
    return [_uuid7(first + i, noise[8 * i : 8 * i + 8]) for i in range(count)]


def _uuid7(stamp: int, noise: bytes) -> str:
    tail = noise.hex()
    head = f"{stamp >> 12:012x}"
    variant = "89ab"[noise[0] & 3]
    return f"{head[:8]}-{head[8:]}-7{stamp & 0xFFF:03x}-{variant}{tail[1:4]}-{tail[4:]}"


def new_token() -> str:
    """Return 128 random bits in the form of a UUID: the token of a lease."""
    hexed = os.urandom(16).hex()
    return f"{hexed[:8]}-{hexed[8:12]}-{hexed[12:16]}-{hexed[16:20]}-{hexed[20:]}"


def new_secret() -> str:
    """Return a token for the service: 256 random bits after a prefix that secret scanners find."""
    return "byr_" + urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")


def worker_id() -> str:
    """Return a worker id, unique for every start of a process."""
    host = (
        "".join(c if c.isalnum() else "-" for c in socket.gethostname())[:40].strip("-") or "host"
    )
    return f"{host}-{os.getpid()}-{os.urandom(6).hex()}"
