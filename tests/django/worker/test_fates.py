# SPDX-License-Identifier: MIT
"""What becomes of tasks in a real worker: every way to end, in one drain."""

from typing import Any

import pytest
from django.db import connection

from byrote.core.errors import BadPayload
from byrote.django import compat
from byrote.django.errors import TaskCrashed, TaskTimedOut
from tests.django.driving import drain
from tests.django.shop import elsewhere, tasks

CALLS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "exact": (tasks.echo, (1e22, -0.0, 2**70, "\x00é😀", [[[]]]), {"ключ": {"b": 1, "a": 2}}),
    "note": (tasks.note, ("hello",), {}),
    "async": (tasks.wait, ([1.5],), {}),
    "async orm": (tasks.anote, ("from a loop",), {}),
    "context": (tasks.where, (), {}),
    "async context": (tasks.awhere, (), {"priority": 1, "run_after": 2}),
    "fail": (tasks.fail, ("bad \x00 \ud800 text".encode("utf-8", "replace").decode(),), {}),
    "fail otherwise": (tasks.fail_otherwise, (), {}),
    "fail first": (tasks.fail_first, (), {}),
    "timeout": (tasks.dawdle, (), {}),
    "exit": (tasks.leave, (), {}),
    "base": (tasks.base_exception, (), {}),
    "crash": (tasks.crash, (), {}),
    "generator": (tasks.generate, (), {}),
    "large": (tasks.shout, (10_000_000,), {}),
    "tuples": (tasks.tuples, (), {}),
    "close": (tasks.close_connection, (), {}),
    "kill": (tasks.kill_connection, (), {}),
    "open": (tasks.leave_open, (), {}),
    "clean": (tasks.is_clean, (), {}),
    "command": (tasks.apart, ("from a fresh process",), {}),
    "hidden": (elsewhere.hidden, (5,), {}),
    "async hidden": (elsewhere.ahidden, (6,), {}),
    "bad call": (tasks.add, (1, 2, 3), {}),
}
VIOLENT = {"timeout", "exit", "base", "crash"}
"""Apart from the others: what runs beside them begins once more when their process goes down."""


@pytest.fixture(scope="module")
def fates(shop: dict[str, str]) -> dict[str, Any]:
    """Every call above, enqueued, drained, and read back."""
    sent: dict[str, Any] = {}
    for violent in (False, True):
        for name in (name for name in CALLS if (name in VIOLENT) == violent):
            task, args, kwargs = CALLS[name]
            sent[name] = task.enqueue(*args, **kwargs)
        drain(shop)
    for result in sent.values():
        result.refresh()
    connection.close()
    return sent


SUCCESSFUL = {
    "exact": [[1e22, -0.0, 2**70, "\x00é😀", [[[]]]], {"ключ": {"b": 1, "a": 2}}],
    "note": "hello",
    "async": [1.5],
    "async orm": 1,
    "fail first": 2,
    "tuples": [1, [2.5, "three"], {"4": None}],
    "close": 1,
    "open": True,
    "clean": True,
    "hidden": 5,
    "async hidden": 6,
}


@pytest.mark.parametrize("name", SUCCESSFUL)
def test_a_task_that_returns_is_successful(fates: dict[str, Any], name: str) -> None:
    result = fates[name]
    assert result.status == compat.TaskResultStatus.SUCCESSFUL, result.errors
    assert repr(result.return_value) == repr(SUCCESSFUL[name])
    assert result.enqueued_at <= result.started_at <= result.last_attempted_at < result.finished_at


FAILED = {
    "timeout": (TaskTimedOut, "0.2 s"),
    "exit": (SystemExit, "3"),
    "base": (BaseException, "no Exception at all"),
    "crash": (TaskCrashed, "7"),
    "generator": (TypeError, "returned a value that cannot be stored. A value of type generator"),
    "large": (BadPayload, "the limit is"),
    "kill": (None, "terminating connection"),
    "bad call": (TypeError, "positional"),
}


@pytest.mark.parametrize("name", FAILED)
def test_a_task_that_does_not_return_has_failed_with_a_reason(
    fates: dict[str, Any], name: str
) -> None:
    kind, said = FAILED[name]
    result = fates[name]
    assert result.status == compat.TaskResultStatus.FAILED
    # A neighbour that takes the hand down may cost it a claim, but never an attempt it made.
    assert len(result.errors) == 1 <= result.attempts
    assert kind is None or result.errors[0].exception_class is kind
    assert said in result.errors[0].traceback
    with pytest.raises(ValueError, match="failed"):
        _ = result.return_value


def test_the_context_has_the_result_as_it_is_stored(fates: dict[str, Any]) -> None:
    result = fates["context"]
    assert result.return_value == [result.id, 1, result.worker_ids, "RUNNING"]
    assert fates["async context"].return_value == [
        fates["async context"].id,
        1,
        {"priority": 1, "run_after": 2},
    ]


def test_every_attempt_has_its_error_and_its_worker(fates: dict[str, Any]) -> None:
    result = fates["fail"]
    assert result.status == compat.TaskResultStatus.FAILED
    assert result.attempts == len(result.worker_ids) == len(result.errors) == 3
    assert {error.exception_class for error in result.errors} == {ValueError}
    assert "in fail" in result.errors[-1].traceback
    assert "\\x00" in result.errors[-1].traceback


def test_a_backoff_that_returns_none_ends_the_task(fates: dict[str, Any]) -> None:
    result = fates["fail otherwise"]
    assert [error.exception_class for error in result.errors] == [ValueError, ValueError, KeyError]
    assert result.status == compat.TaskResultStatus.FAILED


def test_a_second_attempt_keeps_the_first_start(fates: dict[str, Any]) -> None:
    result = fates["fail first"]
    assert result.attempts == 2
    assert result.started_at < result.last_attempted_at
    assert [error.exception_class for error in result.errors] == [RuntimeError]


def test_a_command_runs_in_its_own_process(fates: dict[str, Any]) -> None:
    result = fates["command"]
    assert result.status == compat.TaskResultStatus.SUCCESSFUL, result.errors
    assert isinstance(result.return_value, int)
