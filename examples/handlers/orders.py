# SPDX-License-Identifier: MIT
"""Writes to a database, once: the mark that it was done is part of the same transaction.

The table lives in the database that Byrote lives in, so `ctx.once` can mark the effect in the very
transaction that has it. However often the run is attempted, and whenever a worker dies, the row is
written once. For another database, take the run's id as a unique key there.

Settings: ORDERS_DATABASE_URL.
"""

import os
from decimal import Decimal
from typing import Any

import psycopg

from byrote.sdk import Context, Fatal, Handlers

handlers = Handlers()

WRITE = "insert into shop_orders (customer, total) values (%s, %s)"
COUNT = "update shop_customers set orders = orders + 1 where customer = %s"


@handlers.handle("record_order")
def record_order(ctx: Context, payload: Any) -> dict[str, Any]:
    """Payload: {"customer": "ada", "total": "12.50"}."""
    try:
        customer, total = str(payload["customer"]), Decimal(payload["total"])
    except (KeyError, TypeError, ArithmeticError) as error:
        raise Fatal(f"This is no order: {error!r}") from error
    with psycopg.connect(os.environ["ORDERS_DATABASE_URL"]) as connection:
        with ctx.once("record", connection) as first:
            if first:
                connection.execute(WRITE, (customer, total))
                connection.execute(COUNT, (customer,))
        return {"written": first}
