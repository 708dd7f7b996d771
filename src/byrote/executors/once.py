# SPDX-License-Identifier: MIT
"""Effects inside the same database, done once: the mark is part of the transaction that does them.

The connection is the task's own; anything that looks like one of psycopg's will do.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

from byrote.core.ports import Once


@contextlib.contextmanager
def do_once(statement: Once, run_id: str, key: str, connection: Any) -> Iterator[bool]:
    """A transaction, or a savepoint in the caller's; whether the effect is still to be done."""
    text, args = statement(run_id, key)
    with connection.transaction():
        yield bool(connection.execute(text, args).rowcount)


@contextlib.asynccontextmanager
async def ado_once(statement: Once, run_id: str, key: str, connection: Any) -> AsyncIterator[bool]:
    """A transaction, or a savepoint in the caller's; whether the effect is still to be done."""
    text, args = statement(run_id, key)
    async with connection.transaction():
        yield bool((await connection.execute(text, args)).rowcount)
