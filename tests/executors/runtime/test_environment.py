# SPDX-License-Identifier: MIT
import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from byrote import App
from byrote.core.command import Command
from byrote.core.replay.provenance import provenance_of
from byrote.executors.runtime.provenance.environment import (
    distributions,
    function_digest,
    measure,
    program_digest,
    tree_digest,
)
from byrote.executors.runtime.provenance.git import GitCheckout, head_of


def made(text: str) -> Any:
    """The function `f` of a source text."""
    there: dict[str, Any] = {"functools": functools}
    exec(compile(text, "somewhere.py", "exec"), there)  # noqa: S102 -- our own text.
    return there["f"]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("def f(a): return a + 1", "\n\n# moved\ndef f(a):\n  return a + 1", True),
        ("def f(a): return a + 1", "def f(a): return a + 2", False),
        ("def f(a=1): return a", "def f(a=2): return a", False),
        ("def f(a): return a.b", "def f(a): return a.c", False),
        ("def f(): return [x for x in 'a']", "def f(): return [x for x in 'b']", False),
        ("def f(a): return a in {'x', 'y'}", "def f(a): return a in {'x', 'z'}", False),
        ("def f(a): return (lambda: 1)()", "def f(a): return (lambda: 2)()", False),
        ("g = lambda: 1\nf = functools.wraps(g)(lambda: 0)", "f = lambda: 0", False),
    ],
)
def test_a_function_is_known_by_what_it_does(one: str, other: str, alike: bool) -> None:
    assert (function_digest(made(one)) == function_digest(made(other))) is alike


def test_hashes_do_not_depend_on_the_process(tmp_path: Path) -> None:
    """Sets and addresses must not leak into them."""
    text = (
        "from byrote.executors.runtime.provenance.environment import function_digest\n"
        "def f(a=object(), *, b={1}): return a in {'one', 'two', 'three', 'four', 'five'}\n"
        "print(function_digest(f))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", text],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }

    assert len(found) == 1


def test_a_callable_object_is_known_by_its_class() -> None:
    class One:
        def __call__(self) -> int:
            return 1

    class Two:
        def __call__(self) -> int:
            return 2

    assert function_digest(One()) == function_digest(One())
    assert function_digest(One()) != function_digest(Two())


def test_a_tree_is_known_by_names_and_contents(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("1")
    before = tree_digest({"shop.a": path})
    assert tree_digest({"shop.b": path}) != before
    path.write_text("2")
    assert tree_digest({"shop.a": path}) != before
    path.unlink()
    assert tree_digest({"shop.a": path}) != before


def test_a_program_is_known_by_the_files_it_names(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("true")
    command = Command(argv=("sh", "run.sh"), cwd=str(tmp_path))
    before = program_digest(command)
    script.write_text("false")

    assert program_digest(command) != before
    assert program_digest(Command(argv=("sh", "gone.sh"))) != before


def test_distributions_are_read_off_folders(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    for folder in (first / "Flask_Login-0.6.3.dist-info", first / "old.egg-info",
                   second / "flask_login-9.dist-info", second / "b-1.0.post1.dist-info",
                   second / "noise.py"):  # fmt: skip
        folder.mkdir(parents=True)

    assert distributions([str(first), str(tmp_path / "gone"), str(second)]) == {
        "b": "1.0.post1",
        "flask-login": "0.6.3",
        "old": "",
    }


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode().strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "tasks.py").write_text("1")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


def test_the_commit_is_reported_and_whether_files_were_changed(repository: Path) -> None:
    file = repository / "shop" / "tasks.py"
    commit = git(repository, "rev-parse", "HEAD")
    assert GitCheckout(file.parent).describe([file]) == {"commit": commit, "dirty": False}
    file.write_text("2")

    assert GitCheckout(file.parent).describe([file]) == {"commit": commit, "dirty": True}


def test_a_repository_the_app_is_not_from_is_not_reported(repository: Path) -> None:
    assert GitCheckout(repository).describe([Path(os.__file__)]) is None


def test_without_git_the_commit_is_read_by_hand(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    assert head_of(repository / ".git") == commit
    git(repository, "pack-refs", "--all")
    assert head_of(repository / ".git") == commit
    git(repository, "checkout", "-q", "--detach")
    assert head_of(repository / ".git") == commit
    monkeypatch.setenv("PATH", "")

    told = GitCheckout(repository).describe([repository / "shop" / "tasks.py"])
    assert told == {"commit": commit, "dirty": None}


def test_an_image_without_a_repository_may_name_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYROTE_COMMIT", "c0ffee")

    assert GitCheckout(tmp_path).describe([]) == {"commit": "c0ffee", "dirty": None}


def test_a_document_can_be_stored_whatever_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odd\udc80-1\udc81.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("BYROTE_IMAGE_DIGEST", "TZ"):
        monkeypatch.setenv(name, "odd \udc80")
    app = App()
    app.command("shell", ["sh", "-c", "true"])
    app.task(name="len")(len)
    app.task(name="plain")(test_a_callable_object_is_known_by_its_class)
    doc = measure(app.registry, GitCheckout(tmp_path))

    assert doc["code"]["tasks"].keys() == {"shell@1", "len@1", "plain@1"}
    assert doc["code"]["tasks"]["shell@1"]["tree"] is None
    assert doc["image"] == doc["environment"]["TZ"] == r"odd \udc80"
    assert doc["packages"][r"odd\udc80"] == r"1\udc81"
    assert provenance_of(doc).text
    assert doc["byrote"] == doc["packages"]["byrote"]
