# SPDX-License-Identifier: MIT
import contextlib
import threading

from byrote.assembly.operations.database import OpenedOnce


def test_threads_that_connect_first_at_the_same_time_share_one_store() -> None:
    made: list[object] = []
    both = threading.Barrier(2)

    class App:
        @OpenedOnce
        def store(self) -> object:
            made.append(object())
            # Passes at once if the other thread is in here too.
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(0.3)
            return made[-1]

    app, seen = App(), list[object]()
    threads = [threading.Thread(target=lambda: seen.append(app.store)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert seen == [made[0]] * 2
    assert len(made) == 1
