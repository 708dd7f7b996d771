# SPDX-License-Identifier: MIT
"""The examples of the how-to about artifacts are run as a reader would run them."""

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.test_readme import blocks, byrote
from tests.sdk.harness import ServiceProcess, new_service_token
from tests.support import Db

PAGE = "docs/how-to/artifacts.md"


def test_the_examples_store_and_fetch(url: str, db: Db, tmp_path: Path) -> None:
    tasks, reader, download = blocks(PAGE, "python")
    [commands] = (block for block in blocks(PAGE, "sh"))
    (tmp_path / "exports.py").write_text(tasks, encoding="utf-8")
    (tmp_path / "fetch.py").write_text(reader, encoding="utf-8")
    kept = tmp_path / "kept"
    (tmp_path / "byrote.toml").write_text(f'artifacts = "{kept}"\n', encoding="utf-8")
    worker = byrote("worker", "exports:app", folder=tmp_path, url=url)
    try:
        environment = os.environ | {"BYROTE_DATABASE_URL": url}
        script = [sys.executable, "fetch.py"]
        printed = subprocess.run(
            script, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip
        assert printed.returncode == 0, printed.stderr
    finally:
        worker.terminate()
        worker.communicate(timeout=60)
    said = printed.stdout.splitlines()
    size = 50_000 * len(",some text that makes the file large\n") + sum(
        len(str(n)) for n in range(50_000)
    )

    assert said[0] == "summary.txt 11 text/plain"
    assert said[1] == f"tables/all.csv {size} text/csv"
    assert said[2:] == ["50000 rows", "0,some text that makes the file large"]
    assert len([path for path in kept.rglob("*") if path.is_file()]) == 1

    [[run_id]] = db.execute("select result_id::text from byrote_runs").fetchall()
    for line in commands.splitlines():
        words = line.replace("ID", run_id).split()[1:]
        done = byrote(*words, folder=tmp_path, url=url)
        out, err = done.communicate(timeout=60)
        assert done.returncode == 0, err
        if words[-1] == "-":
            assert out == "50000 rows\n"
    assert (tmp_path / "all.csv").stat().st_size == size
    assert downloaded(download, run_id, url, db=db, folder=tmp_path) == "50000 rows\ntable.csv\n"
    assert (tmp_path / "table.csv").read_bytes() == (tmp_path / "all.csv").read_bytes()


def downloaded(script: str, run_id: str, url: str, *, db: Db, folder: Path) -> str:
    """What the example of the SDK prints."""
    (folder / "download.py").write_text(script, encoding="utf-8")
    service = ServiceProcess(url, folder / "service.log")
    told = {"BYROTE_SERVICE_URL": service.url, "BYROTE_SERVICE_TOKEN": new_service_token(db)}
    try:
        done = subprocess.run(
            [sys.executable, "download.py", run_id],
            cwd=folder,
            env=os.environ | told,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        service.kill()
    assert done.returncode == 0, done.stderr
    return done.stdout
