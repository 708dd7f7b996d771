# SPDX-License-Identifier: MIT
"""Artifacts as clients see them: listed, fetched, and never taken for whole when they are not."""

import asyncio
import errno
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import pytest

from byrote.core.artifact import ArtifactDamaged, UnknownArtifact
from byrote.core.errors import BadOption, RunNotFound, ServiceUnreachable
from byrote.lab.torture.faults.relay import Cut, RelayedConnection
from byrote.sdk import AsyncClient
from byrote.sdk.calls import artifacts
from tests.faults.proxy import HttpProxy
from tests.sdk.harness import Db, ServiceProcess, new_service_token
from tests.support import claim, enqueue, until

LARGE = bytes(range(256)) * 8_192
"""Two megabytes."""
NOWHERE = "0190b0a0-1111-7222-8333-444455556666"

type Keep = Callable[..., str]


def hash_of(content: bytes) -> str:
    return sha256(content).hexdigest()


@pytest.fixture
def keep(db: Db, module_service: ServiceProcess) -> Keep:
    """Stores contents under one lease; returns the run."""
    headers = {"authorization": f"Bearer {new_service_token(db, 'work')}"}

    def keep(*contents: bytes) -> str:
        [run_id] = enqueue(db)
        [lease] = claim(db)
        for number, content in enumerate(contents):
            query = {"run": run_id, "name": f"{number}.csv", "media_type": "text/csv"}
            place = f"{module_service.url}/v1/leases/{lease.token}/artifacts"
            sent = httpx2.put(place, params=query, content=content, headers=headers, timeout=30)
            assert sent.json()["verdict"] == "stored"
        return run_id

    return keep


def file_of(service: ServiceProcess, content: bytes) -> Path:
    """Where the service keeps a large content."""
    [file] = (service._log.parent / "artifacts").rglob(hash_of(content))
    return file


class Rough(HttpProxy):
    """Truncates this many long answers, and makes the configured changes."""

    def __init__(self, port: int) -> None:
        self.cuts = 0
        self.holds = False
        self.change = (b"", b"")
        super().__init__(port)

    def _wire(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> RelayedConnection:
        return _Rough(self, super()._wire(near, far))


class _Rough:
    def __init__(self, proxy: Rough, wire: RelayedConnection) -> None:
        self._proxy = proxy
        self._wire = wire
        self._seen = 0
        self.ask = wire.ask

    async def answer(self, piece: bytes) -> None:
        self._seen += len(piece)
        if self._seen > 1 << 20:
            if self._proxy.cuts:
                self._proxy.cuts -= 1
                raise Cut
            if self._proxy.holds:
                await asyncio.sleep(60)
        old, new = self._proxy.change
        await self._wire.answer(piece.replace(old, new) if old else piece)


@pytest.fixture
def rough(module_service: ServiceProcess) -> Iterator[Rough]:
    made = Rough(module_service.port)
    yield made
    made.close()


@pytest.fixture
def roughly(kind: Any, db: Db, rough: Rough) -> Iterator[Any]:
    """A client behind the rough proxy."""
    made = kind(rough.url, new_service_token(db))
    yield made
    made.close()


@contextmanager
def nothing_new(folder: Path) -> Iterator[None]:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    yield
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_the_artifacts_of_a_run_are_listed(client: Any, keep: Keep) -> None:
    run = keep(b"small", LARGE)
    small, large = client.artifacts(run)

    assert (small.name, small.size, small.hash) == ("0.csv", 5, hash_of(b"small"))
    assert (large.name, large.size, large.media_type) == ("1.csv", len(LARGE), "text/csv")
    assert (small.attempt, small.at.tzinfo is not None) == (1, True)
    assert client.artifacts(keep()) == []


@pytest.mark.parametrize("content", [b"", b"small", LARGE], ids=["empty", "small", "large"])
def test_a_content_comes_as_it_was_stored(
    client: Any, keep: Keep, tmp_path: Path, content: bytes
) -> None:
    run = keep(content)
    [artifact] = client.artifacts(run)
    target = tmp_path / "a.csv"
    target.write_bytes(b"what was there before")

    assert client.fetch(run, artifact) == client.fetch(run, hash_of(content)) == content
    assert client.fetch(run, artifact, to=str(target)) == target
    assert target.read_bytes() == content
    assert list(tmp_path.iterdir()) == [target]


def test_what_is_too_large_for_memory_goes_to_a_file_in_little_of_it(
    client: Any, keep: Keep, tmp_path: Path
) -> None:
    content = bytes(artifacts.BYTES_MAX + 1)
    run = keep(content)
    [artifact] = client.artifacts(run)
    for which in (artifact, artifact.hash):
        with pytest.raises(BadOption, match=r"16,777,216 bytes.*to=path"):
            client.fetch(run, which)
    tracemalloc.start()
    client.fetch(run, artifact, to=tmp_path / "a.bin")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert (tmp_path / "a.bin").read_bytes() == content
    assert peak < 4 << 20


def test_as_much_as_the_limit_comes_as_bytes(
    client: Any, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "BYTES_MAX", len(LARGE))
    run = keep(LARGE)

    assert client.fetch(run, client.artifacts(run)[0]) == LARGE


def test_a_content_changed_on_its_way_is_not_kept(
    roughly: Any, rough: Rough, keep: Keep, tmp_path: Path
) -> None:
    run = keep(b"one million")
    [artifact] = roughly.artifacts(run)
    rough.change = (b"one million", b"two million")
    with nothing_new(tmp_path), pytest.raises(ArtifactDamaged, match=artifact.hash):
        roughly.fetch(run, artifact, to=tmp_path / "a.csv")
    with pytest.raises(ArtifactDamaged, match="11 bytes came"):
        roughly.fetch(run, artifact)


def test_a_content_that_breaks_off_is_begun_anew(
    roughly: Any, rough: Rough, keep: Keep, tmp_path: Path
) -> None:
    run = keep(LARGE)
    rough.cuts = artifacts.TRIES_MAX - 1
    roughly.fetch(run, hash_of(LARGE), to=tmp_path / "a.csv")
    rough.cuts = 1

    assert roughly.fetch(run, hash_of(LARGE)) == (tmp_path / "a.csv").read_bytes() == LARGE
    assert rough.cuts == 0


def test_a_content_that_keeps_breaking_off_leaves_no_file(
    roughly: Any, rough: Rough, keep: Keep, tmp_path: Path
) -> None:
    run = keep(LARGE)
    (tmp_path / "a.csv").write_bytes(b"what was there before")
    rough.cuts = 1_000
    with nothing_new(tmp_path), pytest.raises(ServiceUnreachable, match="broke off 3 times"):
        roughly.fetch(run, hash_of(LARGE), to=tmp_path / "a.csv")


def test_a_content_damaged_at_the_service_is_not_kept(
    client: Any, keep: Keep, module_service: ServiceProcess, tmp_path: Path
) -> None:
    run = keep(LARGE)
    file = file_of(module_service, LARGE)
    file.chmod(0o600)
    file.write_bytes(LARGE[:-1] + b"?")
    try:
        with nothing_new(tmp_path), pytest.raises(ServiceUnreachable, match="may be damaged"):
            client.fetch(run, hash_of(LARGE), to=tmp_path / "a.csv")
    finally:
        # Contents are kept once, and other tests store the same.
        file.unlink()


def test_what_is_not_there_is_unknown(
    client: Any, keep: Keep, module_service: ServiceProcess, tmp_path: Path
) -> None:
    gone = LARGE + b"gone"
    run = keep(gone)
    file_of(module_service, gone).unlink()
    with nothing_new(tmp_path):
        for which in (hash_of(b"never stored"), "0.csv", hash_of(gone)):
            with pytest.raises(UnknownArtifact, match=which):
                client.fetch(run, which, to=tmp_path / "a.csv")
        with pytest.raises(RunNotFound):
            client.fetch(NOWHERE, hash_of(gone), to=tmp_path / "a.csv")
    with pytest.raises(RunNotFound):
        client.artifacts(NOWHERE)


def test_artifacts_of_a_foreign_run_are_not_found(
    kind: Any, db: Db, module_service: ServiceProcess, keep: Keep
) -> None:
    run = keep(b"small")
    other = kind(module_service.url, new_service_token(db, "read", queues=("other",)))
    with pytest.raises(RunNotFound):
        other.artifacts(run)
    with pytest.raises(RunNotFound):
        other.fetch(run, hash_of(b"small"))
    other.close()


def test_a_disk_that_is_full_leaves_no_file(
    client: Any, keep: Keep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = keep(LARGE)
    write = artifacts.Copy.write

    def full(copy: artifacts.Copy, piece: bytes) -> None:
        if copy.seen > 1 << 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(copy, piece)

    monkeypatch.setattr(artifacts.Copy, "write", full)
    with nothing_new(tmp_path), pytest.raises(OSError, match="No space left"):
        client.fetch(run, hash_of(LARGE), to=tmp_path / "a.csv")


def test_a_directory_is_refused_as_a_file(client: Any, tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="is a directory"):
        client.fetch(NOWHERE, hash_of(b""), to=tmp_path)


def test_a_fetch_that_is_cancelled_leaves_no_file(
    db: Db, rough: Rough, keep: Keep, tmp_path: Path
) -> None:
    run = keep(LARGE)
    rough.holds = True

    async def cancel() -> list[Path]:
        async with AsyncClient(rough.url, new_service_token(db)) as client:
            task = asyncio.create_task(client.fetch(run, hash_of(LARGE), to=tmp_path / "a.csv"))
            seen = await asyncio.to_thread(until, lambda: list(tmp_path.iterdir()))
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            return seen

    [part] = asyncio.run(cancel())
    assert part.suffix == ".part"
    assert list(tmp_path.iterdir()) == []
