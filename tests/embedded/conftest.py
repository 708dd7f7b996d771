# SPDX-License-Identifier: MIT
import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pg_users import USER, User

from byrote.embedded import control
from byrote.embedded.errors import NoServer
from byrote.embedded.server import open_server


def new_home() -> Iterator[Path]:
    """A home below no private directory: pytest's tmp_path is closed to the server's user."""
    path = Path(tempfile.mkdtemp(prefix="byrote-pg-"))
    yield path
    with contextlib.suppress(NoServer):
        control.stop(path, force=True)
    shutil.rmtree(path, ignore_errors=True)


empty_home = pytest.fixture(new_home, name="empty_home")
cluster = pytest.fixture(new_home, name="cluster", scope="session")


@pytest.fixture(scope="session")
def made(cluster: Path) -> Path:
    """A cluster to copy: making one for each test takes most of a second."""
    open_server(cluster, environ=os.environ).close()
    return cluster / "data"


@pytest.fixture
def home(empty_home: Path, made: Path) -> Path:
    """A home with a cluster in it that never ran."""
    empty_home.chmod(0o755)
    subprocess.run(["cp", "-a", str(made), str(empty_home / "data")], check=True)
    return empty_home


@pytest.fixture
def user(empty_home: Path) -> Iterator[Callable[..., User]]:
    """Start another process that uses the server of this home."""
    users: list[User] = []

    def start(script: str = USER) -> User:
        users.append(User(empty_home, script))
        return users[-1]

    yield start
    for other in users:
        if other.process.poll() is None:
            other.kill()
