# SPDX-License-Identifier: MIT
"""The alarm by which tests interrupt tasks, beside the alarms of others."""

import signal
import threading

import pytest

from byrote.testing.timeouts import TimeUp, limited


def test_a_foreign_alarm_is_postponed_and_restored() -> None:
    def others(_number: int, _frame: object) -> None: ...

    before = signal.signal(signal.SIGALRM, others)
    signal.setitimer(signal.ITIMER_REAL, 600)
    try:
        with pytest.raises(TimeUp), limited(0.01, is_async=False):
            threading.Event().wait(30)
        assert signal.getsignal(signal.SIGALRM) is others
        assert 500 < signal.getitimer(signal.ITIMER_REAL)[0] <= 600
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_without_a_limit_and_outside_the_main_thread_nothing_rings() -> None:
    with limited(None, is_async=False):
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    ended = []

    def work() -> None:
        with limited(0.001, is_async=False):
            ended.append(threading.Event().wait(0.01))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert ended == [False]
