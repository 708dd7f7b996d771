# SPDX-License-Identifier: MIT
"""Answers what tasks ask of the database: one thread, one connection, opened when first needed."""

from collections.abc import Callable, Mapping
from typing import Any

import psycopg

from byrote.core.errors import ByroteError, DatabaseUnreachable
from byrote.core.ports import Ask, Asks
from byrote.core.run import Leased
from byrote.store.sync import Link

type Answer = Callable[[Link, Leased, Any], Any]
"""Answers one verb; the message of a ByroteError it raises is what the task gets to see."""


class LeaseLost(ByroteError):
    """The attempt that asks does not hold its run any more."""

    code = "lease_lost"


class Clerk:
    """Answers asks in order, each by the function of its verb."""

    def __init__(self, link: Link, asks: Asks, answers: Mapping[str, Answer]) -> None:
        self._link = link
        self._asks = asks
        self._answers = answers

    def run(self) -> None:
        """Answer until the queue says that it was all."""
        while (ask := self._asks.get()) is not None:
            ask.answer(*self._answer(ask))

    def _answer(self, ask: Ask) -> tuple[bool, Any]:
        try:
            return True, self._answers[ask.verb](self._link, ask.run, ask.payload)
        except DatabaseUnreachable:
            raise
        except LeaseLost:
            return False, None
        except ByroteError as error:
            return False, str(error)
        except psycopg.Error as error:
            # The primary message only: what follows it may quote the row.
            return (
                False,
                f"PostgreSQL refused: {error.diag.message_primary or type(error).__name__}",
            )
        except (KeyError, TypeError, ValueError) as error:
            # A hand runs others' code: what it sends may be anything, and must not end the worker.
            return False, f"{ask.verb!r} was not understood: {error!r}"
