# SPDX-License-Identifier: MIT
"""Messages between a supervisor and a hand, validated when they are decoded.

A hand runs user code, which may write anything to the socket. A hand that sends a malformed message
is killed and handled as a crash; the worker goes on.
"""

from typing import Any

import msgspec

from byrote.core.ports.hooks import StoredAttempt
from byrote.executors.runtime.job import Job, Result
from byrote.executors.shared.messages import GARBLED, Introduction, Question

# -- To a hand -----------------------------------------------------------------------------------


class Work(msgspec.Struct, array_like=True, gc=False, tag="work"):
    """Execute these jobs."""

    jobs: list[Job]


class CancelJobs(msgspec.Struct, array_like=True, gc=False, tag="cancel"):
    """Cancel the async attempts in these slots."""

    slots: list[int]


class Answer(msgspec.Struct, array_like=True, gc=False, tag="answer"):
    """The reply to a question."""

    slot: int
    number: int
    ok: bool
    payload: Any


class FinishedRuns(msgspec.Struct, array_like=True, gc=False, tag="finished"):
    """Run ids and verdicts of attempts that are stored, for an app that asked for them."""

    runs: list[tuple[str, str | None]]


class StoredAttempts(msgspec.Struct, array_like=True, gc=False, tag="stored"):
    """Attempts whose verdicts are stored, for an app whose hooks want them."""

    attempts: list[StoredAttempt]


class StartWorker(msgspec.Struct, array_like=True, gc=False, tag="start"):
    """Call the hooks of the worker's start; the hand replies with `WorkerHooksCalled`."""


class Concurrency(msgspec.Struct, array_like=True, gc=False, tag="concurrency"):
    """Execute at most `limit` async tasks at once from now on: `hands` hands execute some."""

    limit: int
    hands: int


class Stop(msgspec.Struct, array_like=True, gc=False, tag="stop"):
    """End when idle."""

    worker: bool = False
    """Whether to call the hooks of the worker's stop first."""


type ToHand = (
    Work | CancelJobs | Answer | FinishedRuns | StoredAttempts | StartWorker | Concurrency | Stop
)

# -- From a hand ---------------------------------------------------------------------------------


class Ready(msgspec.Struct, array_like=True, gc=False, tag="ready"):
    """The app is imported; runs may be sent."""

    introduction: Introduction


class RefusedRuns(msgspec.Struct, array_like=True, gc=False, tag="refused"):
    """The hand cannot start."""

    reason: str
    traceback: str = ""


class WorkerHooksCalled(msgspec.Struct, array_like=True, gc=False, tag="started"):
    """The hooks of the worker's start were called; `refusal` is the error of one that raised."""

    refusal: str = ""
    traceback: str = ""


class Done(msgspec.Struct, array_like=True, gc=False, tag="done"):
    """Attempts have ended."""

    results: list[Result]


class Asked(msgspec.Struct, array_like=True, gc=False, tag="ask"):
    """An attempt asks its supervisor."""

    question: Question


type FromHand = Ready | RefusedRuns | WorkerHooksCalled | Done | Asked


class Malformed(msgspec.Struct):
    """Stands for a malformed message: what is wrong, and the valid results before that."""

    reason: str
    results: list[Result] = []


_to_hand: msgspec.msgpack.Decoder[ToHand] = msgspec.msgpack.Decoder(ToHand)
_from_hand: msgspec.msgpack.Decoder[FromHand] = msgspec.msgpack.Decoder(FromHand)
_result: msgspec.msgpack.Decoder[Result] = msgspec.msgpack.Decoder(Result)
_parts = msgspec.msgpack.Decoder(list[msgspec.Raw])

decode_to_hand = _to_hand.decode


def decode_from_hand(body: memoryview) -> FromHand | Malformed:
    """A hand's message. Raises ValueError if it is not even MessagePack."""
    try:
        return _from_hand.decode(body)
    except msgspec.ValidationError as error:
        return Malformed(str(error), _results_before(body))


def _results_before(body: memoryview) -> list[Result]:
    """The results of a malformed message up to the first that is malformed itself."""
    results: list[Result] = []
    try:
        word, batch, *_ = _parts.decode(body)
        if msgspec.msgpack.decode(word) == "done":
            for part in _parts.decode(batch):
                results.append(_result.decode(part))  # noqa: PERF401 -- those before an error count.
    except GARBLED:
        pass
    return results
