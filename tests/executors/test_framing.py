# SPDX-License-Identifier: MIT
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byrote.executors.framing import FRAME_MAX, HEADER, Frames, frame

pytestmark = pytest.mark.pure

MESSAGES = st.lists(
    st.lists(st.none() | st.integers(-(2**63), 2**63) | st.text() | st.binary(), max_size=5),
    max_size=6,
)


@given(MESSAGES, st.integers(1, 40))
def test_messages_are_put_together_from_whatever_pieces_arrive(
    messages: list[list[object]], size: int
) -> None:
    stream = b"".join(map(frame, messages))
    frames = Frames()
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]

    assert [message for piece in pieces for message in frames.feed(piece)] == messages


def test_an_incomplete_message_waits_for_its_end() -> None:
    whole, frames = frame(["work", [1, 2, 3]]), Frames()

    assert frames.feed(whole[:-1]) == []
    assert frames.feed(whole[-1:] + whole) == [["work", [1, 2, 3]]] * 2


def test_a_large_payload_passes() -> None:
    text = "x" * (5 * 1024 * 1024)

    assert Frames().feed(frame(["done", text])) == [["done", text]]


def test_a_frame_beyond_the_limit_is_refused_before_it_is_awaited() -> None:
    """A task that scribbles on its hand's socket must not make the supervisor buffer 4 GiB."""
    with pytest.raises(ValueError, match="frame"):
        Frames().feed((FRAME_MAX + 1).to_bytes(HEADER, "big"))
