# SPDX-License-Identifier: MIT
"""The examples of README and tutorial are run as a newcomer would run them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of a page in one language."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def byrote(*words: str, folder: Path, url: str) -> "subprocess.Popen[str]":
    """Start `byrote …` in a folder, on a database."""
    environment = os.environ | {"BYROTE_DATABASE_URL": url}
    command = [sys.executable, "-m", "byrote.cli.main", *words]
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_readme_example_prints_its_result(url: str, tmp_path: Path) -> None:
    [example] = blocks("README.md", "python")
    (tmp_path / "shop.py").write_text(example, encoding="utf-8")
    worker = byrote("worker", "shop:app", "--queues", "mail", folder=tmp_path, url=url)
    try:
        environment = os.environ | {"BYROTE_DATABASE_URL": url}
        script = [sys.executable, "shop.py"]
        printed = subprocess.run(
            script,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
    finally:
        worker.terminate()
        _, log = worker.communicate(timeout=60)

    assert printed.stdout == "{'to': 'a@example.com', 'attempt': 1}\n"
    assert worker.returncode == 0
    assert '"message":"sending"' in log


def test_the_readme_verifies_a_replay_in_six_lines(url: str, tmp_path: Path) -> None:
    [example], [script] = blocks("README.md", "python"), blocks("README.md", "sh")
    (tmp_path / "shop.py").write_text(example, encoding="utf-8")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"BYROTE_DATABASE_URL": url, "PATH": path}
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    said = done.stdout.splitlines()

    assert len(script.splitlines()) == 6
    assert done.returncode == 3, done.stderr
    assert [line.split()[0] for line in said if "replayed as" in line] == ["same", *["differs"] * 2]
    assert '  ~ /to  "Ann@Example.com" -> "ann@example.com"' in said
    assert said[-1].startswith("1 run of shop.send_email replayed in ")
    assert said[-1].endswith(": 1 differs.")


def test_the_readme_stays_short_enough_to_be_read() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    [example] = blocks("README.md", "python")

    assert len(lines) < 150
    assert lines[4].strip().startswith("uv run byrote demo")
    assert lines[5].strip().startswith("uv run pytest")
    assert len([line for line in example.splitlines() if line.strip()]) <= 12


def test_the_tutorial_ends_with_a_result(url: str, tmp_path: Path) -> None:
    definition, _caller = blocks("docs/tutorial/first-task.md", "python")
    (tmp_path / "shop.py").write_text(definition, encoding="utf-8")
    sent = byrote("enqueue", "charge", '{"order": 42, "cents": 1999}', folder=tmp_path, url=url)
    run_id = sent.communicate(timeout=60)[0].strip()
    worker = byrote("worker", "shop:app", "--drain", folder=tmp_path, url=url)
    worker.communicate(timeout=60)
    shown = byrote("runs", "show", run_id, "--json", folder=tmp_path, url=url)
    run = json.loads(shown.communicate(timeout=60)[0])

    assert worker.returncode == 0
    assert run["status"] == "SUCCESSFUL"
    assert run["result"] == {"order": 42, "charged": 1999}
