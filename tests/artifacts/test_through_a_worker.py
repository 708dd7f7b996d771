# SPDX-License-Identifier: MIT
"""Artifacts from a task to their readers, in hands and inline."""

import hashlib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from byrote import App
from byrote.artifacts.artifact import Artifact
from byrote.core.artifact import COUNT_MAX, ArtifactDamaged, UnknownArtifact
from byrote.core.errors import RunNotFound
from byrote.core.run import Run
from byrote.core.state import Status
from tests.artifacts.bucket import NAME, open_bucket
from tests.artifacts.storing import LARGE
from tests.support import count
from tests.worker.harness import (
    Database,
    Marks,
    StartWorker,
    WorkerProcess,
    await_end,
    send,
    send_one,
    spec,
)

TASKS = "tests.artifacts.storing:app"
EXECUTORS = pytest.mark.parametrize("executor", ["hand", "inline", "command"])
WARM = pytest.mark.parametrize("executor", ["hand", "inline"])


def start(start_worker: StartWorker, tmp_path: Path, **settings: object) -> WorkerProcess:
    return start_worker(TASKS, **{"artifacts": str(tmp_path / "kept"), **settings})


def files(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "kept").rglob("*") if path.is_file()]


def path_of(artifact: Artifact) -> Path:
    return Path(urlsplit(artifact.location).path) / artifact.hash[:2] / artifact.hash


def fault(run: Run) -> str:
    assert run.status is Status.FAILED
    return f"{run.faults[-1]['type']}: {run.faults[-1]['message']}"


@EXECUTORS
@pytest.mark.parametrize("task", ["small", "asmall"])
def test_a_small_artifact_is_stored_in_the_database(
    *, app: App, db: Database, start_worker: StartWorker, tmp_path: Path, executor: str, task: str
) -> None:
    start(start_worker, tmp_path, executor=executor)
    [run] = await_end(db, send_one(db, spec(task, "notes/hello.txt", "hello")))
    assert run.status is Status.SUCCESSFUL, run.faults
    [artifact] = app.run(run.id).artifacts()

    assert artifact.read() == b"hello"
    assert artifact.hash == hashlib.sha256(b"hello").hexdigest()
    assert (artifact.name, artifact.size, artifact.attempt) == ("notes/hello.txt", 5, 1)
    assert (artifact.media_type, artifact.location) == ("text/plain", "postgres")
    assert files(tmp_path) == []


@EXECUTORS
@pytest.mark.parametrize("task", ["large", "alarge"])
def test_a_large_artifact_is_stored_in_a_directory(
    *, app: App, db: Database, start_worker: StartWorker, tmp_path: Path, executor: str, task: str
) -> None:
    start(start_worker, tmp_path, executor=executor)
    [run] = await_end(db, send_one(db, spec(task, "a")))
    assert run.status is Status.SUCCESSFUL, run.faults
    [artifact] = app.run(run.id).artifacts()

    assert files(tmp_path) == [path_of(artifact)]
    with artifact.open() as file:
        assert file.read(10) == b"a" * 10
        assert file.read() == b"a" * (LARGE - 10)
    assert count(db, "byrote_artifact_blobs") == 0


def test_equal_contents_of_two_runs_are_kept_once(
    app: App, db: Database, start_worker: StartWorker, tmp_path: Path
) -> None:
    start(start_worker, tmp_path)
    specs = [spec("small", "x", "same"), spec("small", "y", "same"), *[spec("large", "a")] * 2]
    runs = await_end(db, *send(db, *specs))

    assert [len(app.run(run.id).artifacts()) for run in runs] == [1, 1, 1, 1]
    assert count(db, "byrote_artifacts") == 4
    assert count(db, "byrote_artifact_blobs") == 1
    assert len(files(tmp_path)) == 1


def test_a_big_file_is_stored_in_bounded_memory(
    app: App, db: Database, start_worker: StartWorker, tmp_path: Path
) -> None:
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(200 << 20)
    start(start_worker, tmp_path)
    [run] = await_end(db, send_one(db, spec("file", str(big))), within=60.0)

    assert app.run(run.id).artifact("big").size == 200 << 20
    assert run.result < 16 << 20


def test_a_file_over_the_limit_is_refused_and_leaves_nothing(
    db: Database, start_worker: StartWorker, tmp_path: Path
) -> None:
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate((3 << 20) + 1)
    start(start_worker, tmp_path, artifact_max="3MB")
    [run] = await_end(db, send_one(db, spec("file", str(big))))

    assert "more than 3,145,728 bytes" in fault(run)
    assert files(tmp_path) == []


@EXECUTORS
def test_names_that_would_surprise_a_shell_are_refused(
    db: Database, start_worker: StartWorker, tmp_path: Path, executor: str
) -> None:
    start(start_worker, tmp_path, executor=executor)
    names = ["", "../x", "a/../b", "/etc/passwd", "a b", "-rf", ".hidden", "a/", "x" * 201, "ä"]
    runs = await_end(db, *send(db, *(spec("small", name, "x") for name in names)))

    assert all("is not an artifact name" in fault(run) for run in runs)
    assert count(db, "byrote_artifacts") == 0


def test_a_name_has_one_content_per_attempt(
    app: App, db: Database, start_worker: StartWorker, tmp_path: Path
) -> None:
    start(start_worker, tmp_path)
    same, other = await_end(db, *send(db, spec("twice", "a", "a"), spec("twice", "a", "b")))

    assert same.status is Status.SUCCESSFUL
    assert "another content as 'x'" in fault(other)
    assert app.run(other.id).artifact("x").read() == b"a"


def test_a_run_has_at_most_a_thousand_artifacts(
    db: Database, start_worker: StartWorker, tmp_path: Path
) -> None:
    start(start_worker, tmp_path)
    most, more = await_end(db, *send(db, spec("many", COUNT_MAX), spec("many", COUNT_MAX + 1)))

    assert len(most.result) == COUNT_MAX
    assert "at most 1,000 artifacts" in fault(more)
    assert count(db, "byrote_artifacts") == 2 * COUNT_MAX


def test_a_blocking_call_in_an_async_task_raises(
    db: Database, start_worker: StartWorker, tmp_path: Path
) -> None:
    start(start_worker, tmp_path)
    [run] = await_end(db, send_one(db, spec("blocking")))

    assert "write `await ctx.aartifact" in fault(run)


@EXECUTORS
def test_an_attempt_whose_lease_is_lost_stores_nothing(
    *, db: Database, start_worker: StartWorker, tmp_path: Path, marks: Marks, executor: str
) -> None:
    start(start_worker, tmp_path, executor=executor)
    gate = tmp_path / "gate"
    run_id = send_one(db, spec("wait_then_store", marks.path, str(gate)))
    marks.await_words(1)
    db.execute("update byrote_task_runs set lease_token = gen_random_uuid()")
    gate.touch()

    assert marks.await_words(2) == ["1", "ArtifactRefused"]
    assert count(db, "byrote_artifacts") == count(db, "byrote_artifact_blobs") == 0
    assert run_id


@WARM
def test_a_thread_that_outlives_its_attempt_stores_nothing(
    *, db: Database, start_worker: StartWorker, tmp_path: Path, marks: Marks, executor: str
) -> None:
    start(start_worker, tmp_path, executor=executor)
    gate = tmp_path / "gate"
    await_end(db, send_one(db, spec("leak", marks.path, str(gate))))
    gate.touch()

    assert marks.await_words(1) in (["ByroteError"], ["ArtifactRefused"])
    assert count(db, "byrote_artifacts") == 0


def test_reading_a_changed_file_raises(
    app: App, db: Database, start_worker: StartWorker, tmp_path: Path
) -> None:
    start(start_worker, tmp_path)
    [run] = await_end(db, send_one(db, spec("large", "a")))
    [artifact] = app.run(run.id).artifacts()
    path = path_of(artifact)
    path.write_bytes(b"b" + b"a" * (LARGE - 1))

    with pytest.raises(ArtifactDamaged, match="large"):
        artifact.read()
    with artifact.open() as file, pytest.raises(ArtifactDamaged):
        file.read()
    path.write_bytes(b"a" * (LARGE - 1))
    with pytest.raises(ArtifactDamaged, match="2,097,151 bytes"):
        artifact.read()
    path.unlink()
    with pytest.raises(UnknownArtifact, match="on this machine"):
        artifact.read()


def test_unknown_runs_and_unknown_names_raise_different_errors(app: App, db: Database) -> None:
    run_id = send_one(db, spec("small", "x", "y"))

    assert app.run(run_id).artifacts() == []
    with pytest.raises(UnknownArtifact, match="There are: none"):
        app.run(run_id).artifact("x")
    with pytest.raises(RunNotFound):
        app.run("01932c4e-8d5b-7a90-b1c2-3d4e5f607182").artifacts()


@WARM
def test_a_large_artifact_may_be_stored_in_s3(
    *,
    app: App,
    db: Database,
    start_worker: StartWorker,
    monkeypatch: pytest.MonkeyPatch,
    executor: str,
) -> None:
    with open_bucket() as bucket:
        for name, value in bucket.environment.items():
            monkeypatch.setenv(name, value)
        where = f"s3://{NAME}/{executor}"
        start_worker(TASKS, artifacts=where, executor=executor)
        [run] = await_end(db, send_one(db, spec("large", "a")))
        assert run.status is Status.SUCCESSFUL, run.faults
        [artifact] = app.run(run.id).artifacts()

        assert artifact.location.startswith(where)
        assert artifact.read() == b"a" * LARGE
        [name] = bucket.objects
        assert name.endswith(f"{artifact.hash[:2]}/{artifact.hash}")
