# SPDX-License-Identifier: MIT
"""The tutorial with curl alone, executed in its order."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_readme import blocks
from tests.service.processes import processes


@pytest.mark.needs("curl")
def test_two_terminals_and_curl_show_the_whole_life_of_a_task(url: str, tmp_path: Path) -> None:
    script = "set -eu\n" + "\n".join(blocks("docs/tutorial/curl.md", "sh"))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with processes(url, 1) as [service]:
        environment = {**os.environ, "PATH": path, "URL": service.url, "BYROTE_DATABASE_URL": url}
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    assert done.returncode == 0, done.stderr
    assert "problem" not in done.stdout
    for told in (
        '"accepted_as":"retried"',
        '"accepted_as":"succeeded"',
        '"result":{"said": "Hello Ada"}',
    ):
        assert told in done.stdout
    keyed = [line for line in done.stdout.splitlines() if line.startswith('{"id"')]
    assert any(keyed.count(line) == 2 for line in keyed)
