# SPDX-License-Identifier: MIT
"""The default location of artifacts, and how they are read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from byrote.artifacts.artifact import Artifact, Source
from byrote.artifacts.content_store import open_content_store, pieces
from byrote.core.artifact import POSTGRES, ArtifactEntry, UnknownArtifact
from byrote.core.errors import RunNotFound
from byrote.core.ports.script import run_script
from byrote.embedded.home import ROOT_STATE
from byrote.store import queries
from byrote.store.queries.enqueue import QueryScript
from byrote.system.platforms import is_root

if TYPE_CHECKING:
    from byrote.store.runners.sync import Store


def default_location(environ: Mapping[str, str]) -> str:
    """The directory for large artifacts if none is set: beside the embedded server's data."""
    named = environ.get("BYROTE_PG_HOME")
    if named:
        return str(Path(named).expanduser().absolute() / "artifacts")
    if is_root():
        return str(ROOT_STATE / "artifacts")
    import platformdirs  # noqa: PLC0415 -- seldom needed.

    return str(platformdirs.user_data_path("byrote", appauthor=False) / "artifacts")


def entries_of(run_id: str) -> QueryScript[list[ArtifactEntry]]:
    """Read the rows of a run's artifacts, oldest attempt first; raises RunNotFound."""
    entries: list[ArtifactEntry] = yield queries.artifacts(run_id)
    if not entries and (yield queries.is_accepted(run_id)) != [True]:
        raise RunNotFound(run_id)
    return entries


def readable(store: "Store", entries: Iterable[ArtifactEntry]) -> list[Artifact]:
    """Return artifacts whose content is read through this store when it is needed."""
    return [Artifact(entry, _source(store, entry)) for entry in entries]


def artifacts_of(store: "Store", run_id: str) -> list[Artifact]:
    """Return all artifacts of a run, oldest attempt first; raises RunNotFound."""
    return readable(store, run_script(entries_of(run_id), store.all))


def artifact_of(store: "Store", run_id: str, name: str, *, attempt: int | None = None) -> Artifact:
    """Return an artifact by its name, of `attempt` or of the newest attempt that has it."""
    return named(artifacts_of(store, run_id), run_id, name, attempt=attempt)


def named(
    there: Sequence[Artifact], run_id: str, name: str, *, attempt: int | None = None
) -> Artifact:
    """Choose an artifact by its name; raises UnknownArtifact."""
    for artifact in reversed(there):
        if artifact.name == name and attempt in {None, artifact.attempt}:
            return artifact
    names = ", ".join(sorted({artifact.name for artifact in there})[:20]) or "none"
    which = "" if attempt is None else f" in attempt {attempt}"
    raise UnknownArtifact(f"Run {run_id} has no artifact {name!r}{which}. There are: {names}.")


def _source(store: "Store", entry: ArtifactEntry) -> Source:
    if entry.location != POSTGRES:
        return lambda: open_content_store(entry.location).read(entry.hash)

    def read() -> Iterator[bytes]:
        data = store.first(queries.blob(entry.hash))
        if data is None:
            raise UnknownArtifact(
                f"The content of artifact {entry.name!r} was deleted: {entry.hash}."
            )
        return pieces(data)

    return read
