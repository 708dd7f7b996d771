# SPDX-License-Identifier: MIT
"""Connections of a pool that the caller hands in, and the error of a pool that has none left."""

from typing import Any

from byrote.core.errors import BadOption, PoolExhausted

SYNC = "ConnectionPool"
ASYNC = "AsyncConnectionPool"


def is_async_pool(pool: object) -> bool:
    """Whether a pool of psycopg_pool is async; raises BadOption for another object."""
    # By the names of its classes: psycopg_pool is a package that only some apps have.
    for each in type(pool).__mro__:
        if each.__module__.partition(".")[0] == "psycopg_pool" and each.__name__ in {SYNC, ASYNC}:
            return each.__name__ == ASYNC
    made = type(pool)
    raise BadOption(
        f"A {made.__module__}.{made.__qualname__} is not a pool that Byrote can use. Pass a "
        f"{SYNC} or an {ASYNC} of psycopg_pool; of SQLAlchemy, pass a session or connection to "
        "`using(connection=…)` instead."
    )


def lent(pool: Any, patience_s: float) -> Any:
    """Take a connection from a pool; raises PoolExhausted if none becomes free in time."""
    from psycopg_pool import PoolTimeout  # noqa: PLC0415 -- a package of the caller's.

    try:
        return pool.getconn(timeout=patience_s)
    except PoolTimeout as error:
        raise exhausted(pool.max_size, patience_s) from error


async def alent(pool: Any, patience_s: float) -> Any:
    """Do the same on an event loop."""
    from psycopg_pool import PoolTimeout  # noqa: PLC0415 -- a package of the caller's.

    try:
        return await pool.getconn(timeout=patience_s)
    except PoolTimeout as error:
        raise exhausted(pool.max_size, patience_s) from error


def exhausted(size: int, patience_s: float) -> PoolExhausted:
    """Return the error for a pool of which every connection is in use."""
    return PoolExhausted(
        f"None of the {size} connections of the pool became free within {patience_s:g} s. Make "
        "the pool larger (`pool_size`, or max_size of your own pool), return connections sooner, "
        "or raise `enqueue_patience`."
    )
