# SPDX-License-Identifier: MIT
"""Answers what tasks ask of the store: one thread, one connection, opened when first needed."""

from collections.abc import Callable, Mapping
from typing import Any

from byrote.core.errors import ByroteError, StoreRefused, Unreachable
from byrote.core.ports.executor import Ask, Asks
from byrote.core.ports.store import ArtifactPort
from byrote.core.run import Leased

type AskHandler = Callable[[ArtifactPort, Leased, Any], Any]
"""Answers one verb; the message of a ByroteError it raises is what the task gets to see."""


class NotHolder(ByroteError):
    """The attempt that asks does not hold its run any more."""

    code = "lease_lost"


class AskServer:
    """Answers asks in order, each by the function of its verb."""

    def __init__(
        self, artifact_rows: ArtifactPort, asks: Asks, answers: Mapping[str, AskHandler]
    ) -> None:
        self._artifact_rows = artifact_rows
        self._asks = asks
        self._answers = answers

    def run(self) -> None:
        """Serve requests until the sentinel None."""
        while (ask := self._asks.get()) is not None:
            ask.answer(*self._answer(ask))

    def _answer(self, ask: Ask) -> tuple[bool, Any]:
        try:
            return True, self._answers[ask.verb](self._artifact_rows, ask.run, ask.payload)
        except Unreachable:
            raise
        except NotHolder:
            return False, None
        except StoreRefused as error:
            return False, error.brief
        except ByroteError as error:
            return False, str(error)
        except (KeyError, TypeError, ValueError) as error:
            # A hand runs others' code: what it sends may be anything, and must not end the worker.
            return False, f"{ask.verb!r} was not understood: {error!r}"
