# SPDX-License-Identifier: MIT
import json
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from byrote.embedded import account
from byrote.embedded import home as homes
from byrote.embedded.account import Account
from byrote.embedded.binaries import find_binaries
from byrote.embedded.binaries_copy import within_reach
from byrote.embedded.errors import HomeUnusable
from byrote.embedded.server import open_server
from tests.programs import ELSEWHERE

pytestmark = pytest.mark.xdist_group("embedded")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason=ELSEWHERE + "only root steps down")

# Everything is imported before stepping down: the interpreter may be in root's own home.
NORMAL_USER = """
import json, os, sys
from pathlib import Path
import psycopg
from byrote.embedded.server import default_home, open_server
uid, gid = int(sys.argv[1]), int(sys.argv[2])
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)
home = default_home(os.environ)
with open_server(environ=os.environ) as server, psycopg.connect(server.url) as connection:
    answer = connection.execute("select 41 + 1").fetchone()[0]
owner = server.data.stat().st_uid
print(json.dumps({"answer": answer, "home": str(home), "owner": owner}))
"""


@pytest.fixture
def private(empty_home: Path) -> Path:
    """A directory only its owner can enter, as root's home is."""
    path = empty_home / "private"
    path.mkdir(mode=0o700)
    return path


@as_root
def test_binaries_in_a_private_directory_are_copied_to_a_reachable_one(
    empty_home: Path, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_home.chmod(0o755)
    original = find_binaries({}).path.parent
    package = private / original.parent.name
    shutil.copytree(original, package / original.name, symlinks=True)
    libs = original.parent.with_name(f"{original.parent.name}.libs")
    shutil.copytree(libs, private / libs.name)
    monkeypatch.setattr(homes, "ROOT_STATE", empty_home / "state")
    environ = {"BYROTE_PG_BIN": str(package / original.name / "bin")}
    with open_server(empty_home / "pg", environ=environ, durable=False) as server:
        with psycopg.connect(server.url) as connection:
            answer = connection.execute("select 1").fetchone()
        psql = subprocess.run(
            [server.binaries.path / "psql", "--version"], check=True, capture_output=True
        )

    assert answer == (1,)
    assert server.binaries.path.is_relative_to(empty_home / "state" / "pgbin")
    assert b"PostgreSQL" in psql.stdout
    assert private.stat().st_mode & 0o777 == 0o700


@as_root
def test_binaries_are_copied_once(
    empty_home: Path, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_home.chmod(0o755)
    monkeypatch.setattr(homes, "ROOT_STATE", empty_home / "state")
    original = find_binaries({}).path.parent
    shutil.copytree(original, private / "package" / original.name, symlinks=True)
    environ = {"BYROTE_PG_BIN": str(private / "package" / original.name / "bin")}
    nobody = Account("nobody", 65534, 65534)
    first = within_reach(find_binaries(environ), nobody)
    inode = first.path.stat().st_ino
    second = within_reach(find_binaries(environ), nobody)

    assert second == first
    assert second.path.stat().st_ino == inode
    assert not list((empty_home / "state" / "pgbin").glob("new*"))


@as_root
@pytest.mark.parametrize("name", ["postgres", "nobody"])
def test_the_server_runs_as_a_user_without_privileges(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(account, "STEP_DOWN_TO", (name, "nobody"))
    with open_server(empty_home, environ=os.environ, durable=False) as server:
        # The `ps` of Linux; on a Mac these tests are not run by root.
        fields = ["ps", "-o", "ruid=,supgrp=", "-p", str(server.pid)]
        found = subprocess.run(fields, capture_output=True, text=True, check=True).stdout

    assert pwd.getpwuid(server.data.stat().st_uid).pw_name in {name, "nobody"}
    assert found.split() == [str(server.data.stat().st_uid), "-"]


@as_root
def test_a_home_the_server_cannot_enter_is_refused_and_not_opened_up(private: Path) -> None:
    with pytest.raises(HomeUnusable, match="may not enter it"):
        open_server(private / "project" / "pg", environ=os.environ, durable=False)

    assert private.stat().st_mode & 0o777 == 0o700


def test_a_normal_user_needs_nothing_but_a_home(empty_home: Path) -> None:
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        nobody = pwd.getpwnam("nobody")
        uid, gid = nobody.pw_uid, nobody.pw_gid
    os.chown(empty_home, uid, gid)
    binaries = within_reach(find_binaries(os.environ), Account("normal", uid, gid))
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("BYROTE_", "XDG_"))}
    environ = plain | {"HOME": str(empty_home), "BYROTE_PG_BIN": str(binaries.path)}
    done = subprocess.run(
        [sys.executable, "-c", NORMAL_USER, str(uid), str(gid)],
        env=environ,
        check=True,
        stdout=subprocess.PIPE,
    )
    said = json.loads(done.stdout)

    assert said["answer"] == 42
    assert said["owner"] == uid
    assert Path(said["home"]).is_relative_to(empty_home)
