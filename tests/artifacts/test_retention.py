# SPDX-License-Identifier: MIT
"""Artifacts go with their runs; contents go when nothing refers to them any more."""

import os
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from byrote.artifacts.content_store import SHARDS, ContentStore, content_store_for, pieces
from byrote.assembly.clock import monotonic
from byrote.assembly.identity import jitter, new_token
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.maintenance import MaintenanceStore
from byrote.store.runners.link import WorkerConnection
from byrote.store.runners.sync import fetch
from byrote.store.worker import ArtifactRows
from byrote.testing import FakeClock
from byrote.worker.asks.artifacts import START_RUN, ArtifactCleaner, prune
from byrote.worker.context import WorkerContext
from tests.store.steps.test_artifact import keep, lease
from tests.support import Db, count, finish, until, verdict
from tests.worker.harness import StartWorker


@pytest.fixture
def link(address: DatabaseAddress, clock: FakeClock) -> Iterator[WorkerConnection]:
    """A worker's connection that lives by the test's clock."""
    link = WorkerConnection(address, "test", jitter=jitter, stopped=threading.Event().wait)
    clock.on(link.connection)
    yield link
    link.drop()


def duties(link: WorkerConnection) -> MaintenanceStore:
    return MaintenanceStore(link, threading.Event(), keep_events=timedelta(days=30))


def prune_all(link: WorkerConnection) -> None:
    assert prune(duties(link), None, going_on=lambda: True) == f"{START_RUN} "


def prune_twice(link: WorkerConnection, clock: FakeClock) -> None:
    """Let unused contents be marked, and deleted once their marks are older than an hour."""
    prune_all(link)
    clock.advance(hours=2)
    prune_all(link)


def dead_run_with(db: Db, *names: str, data: bytes = b"x", **more: object) -> str:
    held = lease(db)
    for name in names:
        keep(db, held, name, data, **more)
    finish(db, [verdict(held, "F")])
    return held.id


def test_artifacts_stay_as_long_as_their_run_and_no_longer(
    db: Db, clock: FakeClock, link: WorkerConnection
) -> None:
    dead_run_with(db, "a", "b")
    young = lease(db)
    keep(db, young, "c", b"young")
    clock.advance(days=89)
    fetch(db, queries.prune())
    prune_twice(link, clock)
    assert (count(db, "byrote_artifacts"), count(db, "byrote_artifact_blobs")) == (3, 2)
    clock.advance(days=2)
    fetch(db, queries.prune())
    prune_twice(link, clock)

    assert [entry.name for entry in fetch(db, queries.artifacts(young.id))] == ["c"]
    assert (count(db, "byrote_artifacts"), count(db, "byrote_artifact_blobs")) == (1, 1)


def test_an_archived_run_keeps_its_artifacts(
    db: Db, clock: FakeClock, link: WorkerConnection
) -> None:
    held = lease(db)
    keep(db, held)
    finish(db, [verdict(held, "S")])
    clock.advance(hours=2)
    [step] = fetch(db, queries.archive(after=START_RUN))
    prune_twice(link, clock)

    assert step.archived == 1
    assert (count(db, "byrote_artifacts"), count(db, "byrote_artifact_blobs")) == (1, 1)


def test_a_content_another_run_refers_to_stays(
    db: Db, clock: FakeClock, link: WorkerConnection
) -> None:
    dead_run_with(db, "a")
    keep(db, lease(db), "a")
    clock.advance(days=91)
    fetch(db, queries.prune())
    prune_twice(link, clock)

    assert (count(db, "byrote_artifacts"), count(db, "byrote_artifact_blobs")) == (1, 1)


def test_a_walk_goes_on_where_it_stopped(db: Db, clock: FakeClock, link: WorkerConnection) -> None:
    for n in range(3):
        dead_run_with(db, "a", "b", data=b"%d" % n)
    db.execute("delete from byrote_dead")
    at, seen = START_RUN, 0
    while at is not None:
        [walked] = fetch(db, queries.prune_artifacts(after=at, limit=1))
        at, seen = walked.reached, seen + walked.removed

    assert (seen, count(db, "byrote_artifacts")) == (6, 0)
    prune_all(link)
    clock.advance(hours=2)
    cursor = prune(duties(link), None, going_on=lambda: False)
    assert prune(duties(link), cursor, going_on=lambda: True) == f"{START_RUN} "
    assert count(db, "byrote_artifact_blobs") == 0


def test_a_blob_that_is_referred_to_again_this_instant_is_not_pruned(
    db: Db, address: DatabaseAddress, clock: FakeClock, link: WorkerConnection
) -> None:
    dead_run_with(db, "a")
    db.execute("delete from byrote_artifacts")
    prune_all(link)
    clock.advance(hours=2)
    held = lease(db)
    with address.open("other") as other:
        clock.on(other)
        with other.transaction():
            keep(other, held)
            prune_all(link)
        prune_twice(link, clock)

    assert (count(db, "byrote_artifacts"), count(db, "byrote_artifact_blobs")) == (1, 1)


def test_a_worker_does_it_by_itself(db: Db, start_worker: StartWorker) -> None:
    dead_run_with(db, "a")
    db.execute("delete from byrote_dead")
    db.execute("update byrote_artifact_blobs set unused_since = '2020-01-01'")
    start_worker("tests.artifacts.storing:app")

    until(lambda: count(db, "byrote_artifacts") + count(db, "byrote_artifact_blobs") == 0)


def tidier(link: WorkerConnection, where: Path) -> ArtifactCleaner:
    context = WorkerContext("w", monotonic, jitter, new_token, lambda _events: None)
    return ArtifactCleaner(ArtifactRows(link), context, str(where))


def old_file(contents: ContentStore, data: bytes) -> tuple[str, Path]:
    digest, _ = contents.store(lambda: pieces(data))
    path = Path(contents.url.removeprefix("file://")) / digest[:2] / digest
    os.utime(path, (0, 0))
    return digest, path


def test_a_worker_sweeps_files_nothing_refers_to(
    db: Db, link: WorkerConnection, tmp_path: Path
) -> None:
    [home] = fetch(db, queries.artifact_prefix())
    contents = content_store_for(str(tmp_path), home)
    digest, wanted = old_file(contents, b"wanted")
    _, unwanted = old_file(contents, b"unwanted")
    unknown_tasks = content_store_for(str(tmp_path), new_token())
    _, strange = old_file(unknown_tasks, b"strange")
    at = bytes.fromhex(digest)
    keep(db, lease(db), "a", b"wanted", digest=at, location=contents.url, sent=None)
    sweeping = tidier(link, tmp_path)

    assert sum(sweeping.sweep() for _ in range(SHARDS)) == 1
    assert wanted.exists()
    assert strange.exists()
    assert not unwanted.exists()


def test_where_nothing_was_ever_stored_there_is_nothing_to_sweep(
    link: WorkerConnection, tmp_path: Path
) -> None:
    assert tidier(link, tmp_path / "none").sweep() == 0
    assert not (tmp_path / "none").exists()
