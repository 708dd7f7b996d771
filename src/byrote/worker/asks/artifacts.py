# SPDX-License-Identifier: MIT
"""Writes the rows of artifacts for running tasks, and deletes unreferenced contents."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from byrote.artifacts.content_store import GRACE, SHARDS, ContentStore, content_store_for
from byrote.core import events
from byrote.core.artifact import (
    CONTENT_LOCKED,
    COUNT_MAX,
    INLINE_MAX,
    ArtifactRefused,
    check_artifact,
    too_large,
)
from byrote.core.errors import ByroteError, RowLocked
from byrote.core.ports.replies import Walked
from byrote.core.ports.store import ArtifactPort, MaintenancePort
from byrote.core.run import Leased
from byrote.worker.asks.ask_server import AskHandler, NotHolder
from byrote.worker.context import WorkerContext

START_RUN = "00000000-0000-0000-0000-000000000000"
SWEEP_EVERY_S = 60.0
"""One shard each time: a round of 256 takes some four hours."""
SWEEP_PAGE = 1_000


def artifact_answers(where: str | None, size_max: int) -> Mapping[str, AskHandler]:
    """The artifact verbs that tasks can ask for; without a content store, small ones only."""
    if where is None:
        size_max = min(size_max, INLINE_MAX)
    known: dict[str, str] = {}

    def terms(
        artifact_rows: ArtifactPort, _run: Leased, _asked: Mapping[str, Any]
    ) -> dict[str, Any]:
        if where is None:
            return {"max": size_max, "location": ""}
        if not known:
            known["location"] = content_store_for(where, artifact_rows.prefix()).url
        return {"max": size_max, "location": known["location"]}

    def store(artifact_rows: ArtifactPort, run: Leased, asked: Mapping[str, Any]) -> list[str]:
        check_artifact(asked["name"], asked["media_type"])
        if asked["size"] > size_max:
            raise too_large(size_max)
        if asked["data"] is not None and len(asked["data"]) > INLINE_MAX:
            raise too_large(INLINE_MAX)
        fields = {name: asked[name] for name in ("name", "size", "media_type", "location", "data")}
        keeping = artifact_rows.keep(run, {**fields, "digest": asked["hash"]})
        if keeping.verdict == "locked":
            raise RowLocked(CONTENT_LOCKED)
        if keeping.verdict not in {"stored", "same"}:
            raise refusal(keeping.verdict, asked["name"])
        return [keeping.media_type, keeping.location, keeping.at.isoformat()]

    return {"artifact.terms": terms, "artifact.store": store}


def refusal(verdict: str, name: str) -> ByroteError:
    """Why an artifact was not stored: `taken`, `full` or `lost`."""
    match verdict:
        case "taken":
            return ArtifactRefused(
                f"This attempt has stored another content as {name!r}; choose another name."
            )
        case "full":
            return ArtifactRefused(
                f"A run has at most {COUNT_MAX:,} artifacts; put several files into one archive."
            )
        case _:
            return NotHolder()


def prune(duties: MaintenancePort, cursor: str | None, *, going_on: Callable[[], bool]) -> str:
    """Delete artifacts of pruned runs, then unused contents; returns the next cursor."""
    run, _, digest = (cursor or f"{START_RUN} ").partition(" ")
    run = _walk(duties.prune_artifacts, run, going_on) or START_RUN
    digest = _walk(duties.prune_blobs, digest, going_on) or ""
    return f"{run} {digest}"


def _walk(
    step: Callable[[str], Walked], at: str | None, going_on: Callable[[], bool]
) -> str | None:
    """Delete step by step from a cursor; returns None at the end."""
    while at is not None:
        at = step(at).reached
        if not going_on():
            break
    return at


class ArtifactCleaner:
    """Sweeps this worker's artifact store, shard by shard, on its own thread.

    No duty of the cluster: the directories of two machines may be two directories.
    """

    def __init__(self, artifact_rows: ArtifactPort, context: WorkerContext, where: str) -> None:
        self._artifact_rows = artifact_rows
        self._context = context
        self._where = where
        self._shard = int(context.jitter() * SHARDS)
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Stop sweeping."""
        self._stopped.set()

    def run(self) -> None:
        """Sweep a shard at intervals until stopped."""
        while not self._stopped.wait(SWEEP_EVERY_S * (0.5 + self._context.jitter())):
            try:
                self.sweep()
            except (OSError, ByroteError) as error:
                # A store that is unavailable now is tried again; nothing depends on it.
                reason = " ".join(str(error).split())[:300]
                self._context.emit([events.Troubled(self._context.worker, "artifacts", reason)])
            # Used once a minute, so the connection is closed in between.
            self._artifact_rows.close()

    def sweep(self) -> int:
        """Delete the contents of the next shard that no row refers to; returns how many."""
        contents: ContentStore = content_store_for(self._where, self._artifact_rows.prefix())
        self._shard = (self._shard + 1) % SHARDS
        return contents.sweep(
            self._shard, self._artifact_rows.referred, grace=GRACE, page=SWEEP_PAGE
        )
