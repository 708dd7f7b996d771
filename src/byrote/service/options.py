# SPDX-License-Identifier: MIT
"""Limits of a service, and the clock and randomness that are passed in."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

import msgspec

from byrote.core.artifact import SIZE_MAX
from byrote.core.json.codec import PAYLOAD_MAX
from byrote.core.ports.executor import Clock
from byrote.wire.terms import WAIT_MAX_S


class ServiceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one service process."""

    body_max: int = 8 * 1024 * 1024
    """Bytes of a request's body, checked before it is parsed."""
    payload_max: Mapping[str, int] = msgspec.field(default_factory=lambda: {"*": PAYLOAD_MAX})
    """Bytes of one spec, by queue."""
    values_max: int = 1_000_000
    """JSON values in one request."""
    body_s: float = 20.0
    """How long a body may take to arrive; a file may take longer (`upload_s`)."""
    upload_rate: int = 64 * 1024
    """Bytes per second at which a file must arrive on average, after the first `body_s`."""
    token_s: float = 5.0
    """How long the look-up of a token may take."""
    ready_s: float = 3.0
    """How long the database may take to answer before `/readyz` answers 503."""
    request_s: float = 30.0
    """How long a request may take, without the time it waits for something."""
    at_once: int = 256
    """Requests under way, those that wait or stream apart. Of all such numbers, a token may take
    as many as are still free (`slots.py`): by itself it gets half of them."""
    waiting: int = 10_000
    """Requests that wait for something to happen."""
    wait_max_s: float = WAIT_MAX_S
    """The longest wait of such a request."""
    streams: int = 200
    """Streams of events, and downloads."""
    artifacts: str | None = None
    """Where artifacts over 1 MiB are stored; absent: they are refused."""
    artifact_max: int = SIZE_MAX
    """Bytes an artifact may have."""
    uploads: int = 16
    """Files that arrive at once; each needs its size in the temporary directory."""
    rate: int = 2_000
    """Requests a second of one token, unless the token has its own rate."""
    connections: int = 8
    """Database connections for work, and half as many for monitoring."""
    patience_s: float = 2.0
    """How long to retry a database that does not answer before reporting it."""
    poll: timedelta = timedelta(seconds=1)

    def upload_s(self, size: int) -> float:
        """How long this many bytes of a file may take to arrive."""
        return self.body_s + size / self.upload_rate

    def payload_limit(self, queue: str) -> int:
        """The maximum size of a spec for this queue."""
        return self.payload_max.get(queue, self.payload_max["*"])


class ServiceContext(NamedTuple):
    """Clock, randomness and identity of one service process, passed in."""

    name: str
    """Unique for every process; begins with `service-`."""
    clock: Clock
    jitter: Callable[[], float]
    token: Callable[[], str]
    ids: Callable[[int], Sequence[str]]
    describe: Callable[[Sequence[str], Sequence[str]], Mapping[str, object]]
    """The registration of this process as a worker that waits for these queues."""
