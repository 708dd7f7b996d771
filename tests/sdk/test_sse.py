# SPDX-License-Identifier: MIT
"""The reader of server-sent events, without a service."""

from typing import Any

import httpx2
import pytest

from byrote.sdk.transport.sse import LINE_MAX, Stream

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("piece", [b"x" * 1_000, b"data: " + b"x" * 1_000 + b"\n"])
def test_a_stream_without_end_of_event_is_refused_at_a_megabyte(piece: bytes) -> None:
    terms: Any = None
    stream = Stream(terms, queue=None, run=None, after=None)

    pieces = (event for _ in range(LINE_MAX // 500) for event in stream.feed(piece))
    with pytest.raises(httpx2.RemoteProtocolError, match="longer than a megabyte"):
        list(pieces)
