# SPDX-License-Identifier: MIT
"""The default location of artifacts, and how they are read."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import platformdirs

from byrote.artifacts.artifact import Artifact, Source
from byrote.artifacts.content_store import open_place, pieces
from byrote.core.artifact import POSTGRES, ArtifactEntry, UnknownArtifact
from byrote.core.errors import UnknownRun
from byrote.embedded.home import ROOT_STATE
from byrote.store import queries
from byrote.store.runners.sync import Store


def default_place(environ: Mapping[str, str]) -> str:
    """The directory for large artifacts if none is set: beside the embedded server's data."""
    named = environ.get("BYROTE_PG_HOME")
    if named:
        return str(Path(named).expanduser().absolute() / "artifacts")
    if os.geteuid() == 0:
        return str(ROOT_STATE / "artifacts")
    return str(platformdirs.user_data_path("byrote", appauthor=False) / "artifacts")


def artifacts_of(store: Store, run_id: str) -> list[Artifact]:
    """Return all artifacts of a run, oldest attempt first; raises UnknownRun."""
    entries = store.all(queries.artifacts(run_id))
    if not entries and store.first(queries.run(run_id)) is None:
        raise UnknownRun(run_id)
    return [Artifact(entry, _source(store, entry)) for entry in entries]


def artifact_of(store: Store, run_id: str, name: str, *, attempt: int | None = None) -> Artifact:
    """Return an artifact by its name, of `attempt` or of the newest attempt that has it."""
    there = artifacts_of(store, run_id)
    for artifact in reversed(there):
        if artifact.name == name and attempt in {None, artifact.attempt}:
            return artifact
    names = ", ".join(sorted({artifact.name for artifact in there})[:20]) or "none"
    which = "" if attempt is None else f" in attempt {attempt}"
    raise UnknownArtifact(f"Run {run_id} has no artifact {name!r}{which}. There are: {names}.")


def _source(store: Store, entry: ArtifactEntry) -> Source:
    if entry.place != POSTGRES:
        return lambda: open_place(entry.place).read(entry.hash)

    def read() -> Iterator[bytes]:
        data = store.first(queries.blob(entry.hash))
        if data is None:
            raise UnknownArtifact(
                f"The content of artifact {entry.name!r} was deleted: {entry.hash}."
            )
        return pieces(data)

    return read
