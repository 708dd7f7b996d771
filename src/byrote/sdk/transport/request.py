# SPDX-License-Identifier: MIT
"""One request to the service as a value, and how it is tried again: written once, run by two.

A script is a generator: it yields what is to be done (`Send`, `Pause`), is sent the result,
and returns the answer. `client.py` does it in a thread, `aclient.py` on an event loop; neither
decides anything.

Safe to repeat is what asks only, what carries an Idempotency-Key (made once per call, so every try
has the same), and what is fenced by a lease. Anything else is tried again only when it certainly
was not sent, or was refused before it was processed.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, Self

import msgspec

from byrote.core.errors import ServiceUnreachable, WithheldInReplay
from byrote.core.replay.withholding import Withholding, withholding
from byrote.wire.problems import PASSING, Refused, error_of

BACKOFF_FIRST_S = 0.1
BACKOFF_MAX_S = 5.0


class SendRequest(NamedTuple):
    """Send this request, and wait for the answer up to `within_s`."""

    call: "ServiceCall[Any]"
    headers: Mapping[str, str]
    within_s: float


class Pause(NamedTuple):
    """Wait for a while."""

    seconds: float


class ServiceResponse(NamedTuple):
    """The service, or a proxy, has answered."""

    status: int
    body: bytes
    retry_after_s: float | None = None


class LostResponse(NamedTuple):
    """There was no answer."""

    why: str
    sent: bool
    """Whether the request may have arrived nevertheless."""


type CallScript[T] = Generator[SendRequest | Pause, Any, T]
"""Is sent an Answer or a Lost for every Send."""


class Terms(NamedTuple):
    """The parameters of a script: address, clock, jitter, ids and the caller's time limit."""

    address: str
    clock: Callable[[], float]
    jitter: Callable[[], float]
    key: Callable[[], str]
    timeout_s: float


type Program[T] = Callable[[Terms], CallScript[T]]
"""A script of requests: one verb of a client."""


type Body = bytes | Callable[[], Iterator[bytes]]
"""Bytes, or a function that yields them in pieces, called again for every try."""


class Sink(Protocol):
    """Receives the content of an answer in pieces."""

    def begin(self) -> None:
        """A content begins; pieces received before are void."""

    def write(self, piece: bytes) -> None:
        """The next piece."""

    def cut(self, why: str) -> None:
        """The content was interrupted."""


def _withheld(held: Withholding, method: str, path: str, body: "Body | None") -> bytes:
    """The answer to a request that a replay does not send; only enqueueing has one."""
    if (method, path) != ("POST", "/v1/runs") or not isinstance(body, bytes):
        raise WithheldInReplay(
            f"This is a replay: it must not change what others see, so {method} {path} was not "
            "sent. Do it inside a step, whose result is recorded."
        )
    asked = msgspec.json.decode(body)
    runs = [
        {"id": held.enqueue(run["task"])[0], "spec_hash": "0" * 64, "created": True}
        for run in (asked if isinstance(asked, list) else [asked])
    ]
    return msgspec.json.encode({"runs": runs} if isinstance(asked, list) else runs[0])


class ServiceCall[T]:
    """A request, how its answer is read, and whether it may be sent twice."""

    __slots__ = (
        "body",
        "key",
        "method",
        "otherwise",
        "path",
        "query",
        "read",
        "repeat",
        "sink",
        "wait_s",
    )

    def __init__(
        self,
        method: str,
        path: str,
        read: Callable[[bytes], T],
        *,
        body: Body | None = None,
        query: Mapping[str, str] | None = None,
        repeat: bool = True,
        keyed: bool = False,
        key: str | None = None,
        wait_s: float = 0.0,
        otherwise: Mapping[str, Callable[[Refused], T]] | None = None,
    ) -> None:
        self.method = method
        self.path = path
        self.read = read
        self.body = body
        self.query = query or {}
        self.repeat = repeat
        self.key = key if keyed or key is not None else ""
        """None: one is made for the call; empty: it has none."""
        self.wait_s = wait_s
        """How long the service may take because it was asked to wait."""
        self.otherwise = otherwise or {}
        """Results for some refusals, by their code; all others are raised."""
        self.sink: Sink | None = None

    def into(self, sink: Sink) -> Self:
        """Send the content of a successful answer to a sink; `read` then receives none."""
        self.sink = sink
        return self

    def __call__(self, terms: Terms) -> CallScript[T]:
        """Send it until it is answered, time is up, or trying again is not safe."""
        if self.method != "GET" and (held := withholding()) is not None:
            return self.read(_withheld(held, self.method, self.path, self.body))
        headers = self.headers(terms.key)
        deadline = terms.clock() + terms.timeout_s + self.wait_s
        tries = 1
        while True:
            within = max(deadline - terms.clock(), 0.001)
            response: ServiceResponse | LostResponse = yield SendRequest(self, headers, within)
            if isinstance(response, ServiceResponse) and response.status < 300:
                return self.read(response.body)
            error, again = self.trouble(response, terms.address)
            if isinstance(error, Refused) and error.code in self.otherwise:
                return self.otherwise[error.code](error)
            pause = pause_before(tries, response, terms.jitter)
            if not again or terms.clock() + pause >= deadline:
                raise error
            tries += 1
            yield Pause(pause)

    def headers(self, key: Callable[[], str]) -> dict[str, str]:
        """Headers of every try of this call."""
        made = key() if self.key is None else self.key
        return {"Idempotency-Key": made} if made else {}

    def trouble(
        self, response: ServiceResponse | LostResponse, address: str
    ) -> tuple[Refused | ServiceUnreachable, bool]:
        """Return the error of a failed response, and whether the request may be sent again."""
        if isinstance(response, LostResponse):
            error = ServiceUnreachable(f"The service at {address} did not answer: {response.why}")
            return error, self.repeat or not response.sent
        refused = error_of(response.status, response.body)
        # Before these, nothing was done; the others may come after.
        safe = self.repeat or response.status == 429 or refused.code == "row_locked"
        return refused, safe and refused.code in PASSING


def pause_before(
    tries: int, response: ServiceResponse | LostResponse, jitter: Callable[[], float]
) -> float:
    """Seconds to wait after this many tries: full jitter, but never less than requested."""
    jittered: float = min(BACKOFF_FIRST_S * 2 ** min(tries - 1, 20), BACKOFF_MAX_S) * jitter()
    asked = response.retry_after_s if isinstance(response, ServiceResponse) else None
    return jittered if asked is None else asked + jittered
