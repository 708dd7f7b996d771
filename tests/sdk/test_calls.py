# SPDX-License-Identifier: MIT
"""How calls are tried again, with a clock that moves only when a script pauses."""

from collections.abc import Sequence
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from byrote.core.errors import (
    BadOption,
    BadPayload,
    RunNotFound,
    ServiceUnreachable,
    WithheldInReplay,
)
from byrote.core.policy import Retry
from byrote.core.ports.script import run_script
from byrote.core.replay.withholding import Withholding, open_withholding
from byrote.sdk.calls import producer
from byrote.sdk.transport.request import (
    LostResponse,
    Pause,
    Program,
    SendRequest,
    ServiceCall,
    ServiceResponse,
    Terms,
)
from byrote.wire.problems import Forbidden, Refused, RunLocked, problem_of

OK = ServiceResponse(200, b"fine")
CUT = LostResponse("the line went dead", sent=True)
NOT_SENT = LostResponse("connection refused", sent=False)
BUSY = ServiceResponse(503, b"", 2.0)


class Stage:
    """Plays the service to a script, and keeps what was done."""

    def __init__(self, *answers: ServiceResponse | LostResponse, timeout_s: float = 60.0) -> None:
        self._answers = list(answers)
        self._keys = iter(f"key-{n}" for n in range(100))
        self._timeout_s = timeout_s
        self.now = 0.0
        self.sent: list[SendRequest] = []
        self.pauses: list[float] = []

    def run[T](self, program: Program[T]) -> T:
        terms = Terms(
            "here", lambda: self.now, lambda: 1.0, lambda: next(self._keys), self._timeout_s
        )
        return run_script(program(terms), self._do)

    def _do(self, todo: SendRequest | Pause) -> ServiceResponse | LostResponse | None:
        if isinstance(todo, Pause):
            self.pauses.append(todo.seconds)
            self.now += todo.seconds
            return None
        self.sent.append(todo)
        return self._answers.pop(0)


def call(**options: Any) -> ServiceCall[bytes]:
    return ServiceCall("POST", "/v1/x", bytes, **options)


@pytest.mark.parametrize(
    "trouble", [CUT, NOT_SENT, BUSY, ServiceResponse(429, b""), ServiceResponse(502, b"")]
)
def test_a_call_that_is_safe_to_repeat_is_repeated(trouble: ServiceResponse | LostResponse) -> None:
    assert Stage(trouble, trouble, OK).run(call()) == b"fine"


def test_an_unsafe_call_is_not_sent_twice_when_it_may_have_arrived() -> None:
    for trouble in (CUT, BUSY, ServiceResponse(500, b"")):
        stage = Stage(trouble, OK)
        with pytest.raises((ServiceUnreachable, Refused)):
            stage.run(call(repeat=False))

        assert len(stage.sent) == 1


def test_an_unsafe_call_that_was_never_sent_or_turned_away_is_sent_again() -> None:
    stage = Stage(NOT_SENT, ServiceResponse(429, b""), OK)

    assert stage.run(call(repeat=False)) == b"fine"
    assert len(stage.sent) == 3


def test_an_unsafe_call_for_a_locked_run_is_sent_again_until_time_is_up() -> None:
    """The service did nothing before it answered so."""
    problem = problem_of(RunLocked("Try again.", retry_after_s=1))
    locked = ServiceResponse(503, msgspec.json.encode(problem), 1.0)

    assert Stage(locked, locked, ServiceResponse(200, b"{}")).run(producer.retry("r")) is True
    with pytest.raises(RunLocked, match="Try again"):
        Stage(*[locked] * 9, timeout_s=5).run(producer.retry("r"))


def test_every_try_of_a_call_has_the_same_key_and_every_call_its_own() -> None:
    stage = Stage(CUT, CUT, OK, OK)
    stage.run(call(keyed=True))
    stage.run(call(keyed=True))
    keys = [sent.headers["Idempotency-Key"] for sent in stage.sent]

    assert keys == ["key-0", "key-0", "key-0", "key-1"]


def test_a_key_of_the_callers_own_is_used() -> None:
    stage = Stage(OK)
    stage.run(call(keyed=True, key="order-42"))

    assert stage.sent[0].headers == {"Idempotency-Key": "order-42"}


def test_a_wait_that_the_service_asks_for_is_kept() -> None:
    stage = Stage(ServiceResponse(503, b"", 7.0), OK)
    stage.run(call())

    assert stage.pauses[0] >= 7.0


def test_pauses_grow_and_are_bounded() -> None:
    stage = Stage(*[CUT] * 12, OK, timeout_s=600.0)
    stage.run(call())

    assert stage.pauses[:3] == [0.1, 0.2, 0.4]
    assert max(stage.pauses) == stage.pauses[-1] == 5.0


def test_tries_end_with_the_callers_patience() -> None:
    stage = Stage(*[CUT] * 100, timeout_s=3.0)
    with pytest.raises(ServiceUnreachable, match="here did not answer: the line went dead"):
        stage.run(call())

    assert stage.now <= 3.0
    assert all(sent.within_s <= 3.0 for sent in stage.sent)


def test_a_refusal_is_raised_as_what_it_is() -> None:
    body = b'{"type":"urn:x","title":"","status":403,"detail":"no","code":"forbidden"}'
    with pytest.raises(Forbidden, match="no"):
        Stage(ServiceResponse(403, body)).run(call())


def test_a_run_that_is_not_there_is_an_unknown_run() -> None:
    body = b'{"type":"urn:x","title":"","status":404,"detail":"no","code":"not_found"}'
    with pytest.raises(RunNotFound, match="abc"):
        Stage(ServiceResponse(404, body)).run(producer.get("abc"))


def test_many_runs_go_in_batches_that_the_service_takes() -> None:
    def reply(count: int) -> ServiceResponse:
        runs = [{"id": str(n), "spec_hash": ""} for n in range(count)]
        return ServiceResponse(201, msgspec.json.encode({"runs": runs}))

    stage = Stage(reply(1000), reply(500))
    accepted = stage.run(producer.enqueue_many(producer.new_run("t", n) for n in range(1_500)))
    sizes = [len(msgspec.json.decode(sent.call.body)) for sent in stage.sent]
    keys = [sent.headers["Idempotency-Key"] for sent in stage.sent]

    assert (len(accepted), sizes, len(set(keys))) == (1_500, [1_000, 500], 2)


def test_large_runs_go_in_smaller_batches() -> None:
    sizes = [
        sum(map(len, batch))
        for batch in producer._bodies(producer.new_run("t", "x" * 100_000) for _ in range(20))
    ]

    assert len(sizes) == 4
    assert max(sizes) <= producer.BODY_MAX


def described(**how: Any) -> dict[str, Any]:
    return msgspec.json.decode(msgspec.json.encode(producer.new_run("t", **how)))  # type: ignore[no-any-return]


def test_options_are_sent_as_the_wire_defines_them() -> None:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    retry = Retry(attempts=3, delay_first=timedelta(seconds=7))
    run = described(kwargs={"a": 1.0}, run_after=at, timeout="2m", retry=retry)

    assert (run["kwargs"], run["timeout"]) == ({"a": 1.0}, 120.0)
    assert run["run_after"] == "2030-01-01T00:00:00+00:00"
    assert (run["retry"]["attempts"], run["retry"]["delay_first"]) == (3, 7.0)


BAD: Sequence[tuple[type[Exception], dict[str, Any]]] = [
    (BadOption, {"payload": 1, "args": [1]}),
    (BadOption, {"run_after": datetime(2030, 1, 1)}),  # noqa: DTZ001 -- the point.
    (ValueError, {"run_after": "soon"}),
    (BadOption, {"colour": "red"}),
    (BadPayload, {"payload": float("nan")}),
    (BadPayload, {"payload": {1, 2}}),
]


@pytest.mark.parametrize(("error", "how"), BAD, ids=repr)
def test_what_makes_no_sense_is_refused_before_it_is_sent(
    error: type[Exception], how: dict[str, Any]
) -> None:
    with pytest.raises(error):
        described(**how)


def test_a_replay_enqueues_nothing_and_changes_nothing() -> None:
    """What enqueues is answered, what asks is sent, and the rest is refused."""
    told: list[tuple[str, str, int]] = []

    def replayed() -> tuple[Any, Any]:
        open_withholding(Withholding("r", lambda *what: told.append(what)))
        stage = Stage(OK)
        one = stage.run(producer.enqueue("mail", {"to": 1}))
        many = stage.run(producer.enqueue_many([producer.new_run("mail"), producer.new_run("sms")]))
        assert stage.run(ServiceCall("GET", "/v1/x", lambda body: body)) == b"fine"
        with pytest.raises(WithheldInReplay, match=r"POST /v1/runs/.*cancel was not sent"):
            stage.run(producer.cancel(one.id))
        return one, many

    one, many = copy_context().run(replayed)

    assert len({one.id, *(run.id for run in many)}) == 3
    assert told == [("enqueue", "mail", 1), ("enqueue", "mail", 1), ("enqueue", "sms", 1)]
