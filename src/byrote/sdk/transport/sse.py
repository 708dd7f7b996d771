# SPDX-License-Identifier: MIT
"""Server-sent events: parses them from pieces, and knows where to resume."""

from collections.abc import Iterator

import httpx2
import msgspec

from byrote.sdk.transport.request import LostResponse, ServiceResponse, Terms, pause_before
from byrote.wire.messages import EventView
from byrote.wire.problems import PASSING, error_of

SILENCE_MAX_S = 60.0
"""The service sends something more often than this, at least a comment."""
LINE_MAX = 1 << 20

_event = msgspec.json.Decoder(EventView).decode


class Stream:
    """One subscription, over any number of connections."""

    def __init__(
        self, terms: Terms, *, queue: str | None, run: str | None, after: str | None
    ) -> None:
        asked = {"queue": queue, "run": run}
        self._query = {name: value for name, value in asked.items() if value is not None}
        self._terms = terms
        self._last = after
        self._rest = b""
        self._data: list[bytes] = []
        self._tries = 0
        self.pause_s = 0.0

    def request(self, http: httpx2.Client | httpx2.AsyncClient) -> httpx2.Request:
        """Return the request that opens the stream at the last received event."""
        headers = {"Accept": "text/event-stream"}
        if self._last is not None:
            headers["Last-Event-ID"] = self._last
        timeout = httpx2.Timeout(SILENCE_MAX_S, connect=5.0)
        return http.build_request(
            "GET", "/v1/stream", params=self._query, headers=headers, timeout=timeout
        )

    def opened(self, answer: httpx2.Response) -> None:
        """Check that the response is a stream; raises errors that a person must fix."""
        self._rest, self._data = b"", []
        if answer.status_code < 300:
            return
        error = error_of(answer.status_code, answer.content)
        if error.code not in PASSING:
            raise error

    def feed(self, piece: bytes) -> Iterator[EventView]:
        """The events that this piece completes."""
        *lines, self._rest = (self._rest + piece).replace(b"\r\n", b"\n").split(b"\n")
        if len(self._rest) > LINE_MAX:
            raise httpx2.RemoteProtocolError("a line of the stream is longer than a megabyte")
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
                if sum(map(len, self._data)) > LINE_MAX:
                    raise httpx2.RemoteProtocolError("an event is longer than a megabyte")
            elif not line and self._data:
                event = _event(b"\n".join(self._data))
                self._data, self._tries, self._last = [], 0, event.id
                yield event

    def ended(self, error: httpx2.TransportError | None) -> None:
        """The connection is lost; the next one is opened after `pause_s`."""
        self._tries += 1
        gone = LostResponse("", sent=True) if error is not None else ServiceResponse(200, b"")
        self.pause_s = pause_before(self._tries, gone, self._terms.jitter)
