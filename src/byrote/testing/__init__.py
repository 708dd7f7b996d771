# SPDX-License-Identifier: MIT
"""Helpers for tests: run tasks in the test's process, in virtual time, or only capture them."""

from typing import TYPE_CHECKING

from byrote.exports import lazy_exports

if TYPE_CHECKING:
    from byrote.testing.binding import use_connection as use_connection
    from byrote.testing.capture import captured_tasks as captured_tasks
    from byrote.testing.clock import FakeClock as FakeClock
    from byrote.testing.enqueued import (
        EnqueuedCall as EnqueuedCall,
        assert_enqueued as assert_enqueued,
        assert_not_enqueued as assert_not_enqueued,
    )
    from byrote.testing.memory import MemoryContext as MemoryContext, context as context
    from byrote.testing.running import run_tasks as run_tasks
else:
    # Fetched when first used: pytest imports this package for its plugin in every session.
    __all__, __getattr__ = lazy_exports(
        __name__,
        {
            "byrote.testing.binding": "use_connection",
            "byrote.testing.capture": "captured_tasks",
            "byrote.testing.clock": "FakeClock",
            "byrote.testing.enqueued": "EnqueuedCall assert_enqueued assert_not_enqueued",
            "byrote.testing.memory": "MemoryContext context",
            "byrote.testing.running": "run_tasks",
        },
    )
