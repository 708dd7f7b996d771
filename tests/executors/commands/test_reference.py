# SPDX-License-Identifier: MIT
"""Our own executor as a program: what it reads, what it answers, how it ends."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.worker.harness import ROOT


def execute(
    *words: str,
    stdin: str = "",
    app: str = "tests.executors.runtime.printing:app",
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Run it as anybody could, without a worker."""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environment}
    argv = [sys.executable, "-m", "byrote.executor", "--app", app, *words]
    return subprocess.run(
        argv, input=stdin, env=env, cwd=ROOT, capture_output=True, text=True, check=False
    )


def document(task: str, *args: Any) -> str:
    return json.dumps({"spec": {"task": task, "version": 1, "args": args, "kwargs": {}}})


def test_without_a_descriptor_the_answer_is_all_there_is_on_stdout() -> None:
    ended = execute(stdin=document("elsewhere", "word"))

    assert (ended.returncode, ended.stdout) == (0, '{"ok":true,"result":"word"}\n')
    assert ended.stderr == "word\nerror word\n"


def test_a_failing_task_is_an_answer_too() -> None:
    ended = execute(stdin=document("fail"))
    answer = json.loads(ended.stdout)

    assert (ended.returncode, answer["ok"], answer["fatal"]) == (0, False, False)
    assert (answer["error"]["type"], answer["error"]["message"]) == ("ValueError", "no further")


def test_a_document_may_come_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "document"
    path.write_text(document("elsewhere", "word"))

    assert execute("--payload-file", str(path)).stdout == '{"ok":true,"result":"word"}\n'


@pytest.mark.parametrize("words", [("--payload",), ("--task-path", "elsewhere", "--payload-json")])
def test_a_spec_may_come_as_an_argument(words: tuple[str, ...]) -> None:
    spec = json.loads(document("elsewhere", "word"))["spec"]

    assert execute(*words, json.dumps(spec)).stdout == '{"ok":true,"result":"word"}\n'


@pytest.mark.parametrize("stdin", ["", "rubbish", "{}", '{"spec": 1}', '{"spec": {}}'])
def test_a_document_that_makes_no_sense_ends_it_with_2_and_one_line(stdin: str) -> None:
    ended = execute(stdin=stdin)

    assert (ended.returncode, ended.stdout) == (2, "")
    assert len(ended.stderr.splitlines()) == 1


def test_an_app_that_is_not_there_ends_it_with_2_and_one_line() -> None:
    ended = execute(stdin=document("elsewhere", "word"), app="tests.nowhere:app")

    assert ended.returncode == 2
    assert ended.stderr.startswith("No module 'tests.nowhere'")


def test_it_describes_the_app() -> None:
    told = json.loads(execute("--describe").stdout)

    assert told["tasks"]["a_say@1"] is True
    assert told["commands"]["elsewhere@1"] == {}
    assert told["commands"]["linger@1"]["payload"] == "argv"


def test_a_django_project_is_set_up_first(tmp_path: Path) -> None:
    """Any package of that name will do: what counts is that `setup()` is called before the app."""
    (tmp_path / "django").mkdir()
    said = "import sys\n\ndef setup():\n    print('set up', file=sys.stderr)\n"
    (tmp_path / "django" / "__init__.py").write_text(said)
    ended = execute(
        stdin=document("elsewhere", "word"),
        DJANGO_SETTINGS_MODULE="settings",
        PYTHONPATH=f"{tmp_path}:{ROOT}",
    )

    assert ended.stderr.splitlines()[0] == "set up"
