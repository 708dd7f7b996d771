# SPDX-License-Identifier: MIT
"""Answers the asks of tasks to the store: one thread, one connection, opened on demand.

A request that meets a locked row is put aside and tried again until the row is free or the lease
is lost; no other request waits for it.
"""

from collections.abc import Callable, Mapping
from queue import Empty
from typing import Any

from byrote.core.errors import ByroteError, RowLocked, StoreRefused, Unreachable
from byrote.core.ports.executor import Ask, Asks
from byrote.core.ports.store import ArtifactPort
from byrote.core.run import Leased

ASIDE_S = 0.1
"""How long to wait before postponed requests are tried again."""

BATCH_MAX = 20
"""Requests after which postponed ones are tried again."""

type AskHandler = Callable[[ArtifactPort, Leased, Any], Any]
"""Answers one verb. The task sees the message of a ByroteError that it raises."""


class NotHolder(ByroteError):
    """The attempt that asks no longer holds the lease of its run."""

    code = "lease_lost"


class AskServer:
    """Answers asks in order, each by the function of its verb, except postponed ones."""

    def __init__(
        self, artifact_rows: ArtifactPort, asks: Asks, answers: Mapping[str, AskHandler]
    ) -> None:
        self._artifact_rows = artifact_rows
        self._asks = asks
        self._answers = answers
        self._aside: list[Ask] = []
        self._closing = False

    def run(self) -> None:
        """Serve requests until the sentinel None."""
        while not self._closing:
            batch = self._batch()
            aside, self._aside = self._aside, []
            for ask in batch + aside:
                self._serve(ask)
        for ask in self._aside:
            ask.answer(False, "A row is locked by another transaction, and the worker ends.")

    def _batch(self) -> list[Ask]:
        batch: list[Ask] = []
        try:
            ask = self._asks.get(timeout=ASIDE_S if self._aside else None)
            while ask is not None:
                batch.append(ask)
                if len(batch) >= BATCH_MAX:
                    return batch
                ask = self._asks.get_nowait()
        except Empty:
            return batch
        self._closing = True
        return batch

    def _serve(self, ask: Ask) -> None:
        try:
            ask.answer(*self._answer(ask))
        except RowLocked:
            self._aside.append(ask)

    def _answer(self, ask: Ask) -> tuple[bool, Any]:
        try:
            return True, self._answers[ask.verb](self._artifact_rows, ask.run, ask.payload)
        except (Unreachable, RowLocked):
            raise
        except NotHolder:
            return False, None
        except StoreRefused as error:
            return False, error.brief
        except ByroteError as error:
            return False, str(error)
        except (KeyError, TypeError, ValueError) as error:
            # A hand runs user code: it may send anything, and that must not end the worker.
            return False, f"{ask.verb!r} was not understood: {error!r}"
