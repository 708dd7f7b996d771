# SPDX-License-Identifier: MIT
"""The tutorial of the SDK works as written."""

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.test_readme import blocks
from tests.sdk.harness import Db, ServiceProcess, new_service_token
from tests.support import until

PAGE = "docs/tutorial/sdk.md"


def test_handlers_a_worker_and_a_client_as_in_the_tutorial(
    url: str, db: Db, tmp_path: Path
) -> None:
    handlers, own_program, client, hooks, traced = blocks(PAGE, "python")
    service = ServiceProcess(url, tmp_path / "service.log")
    environ = {
        **os.environ,
        "BYROTE_SERVICE_URL": service.url,
        "BYROTE_SERVICE_TOKEN": new_service_token(db),
    }
    for name, text in (("shop", handlers), ("own", own_program), ("client", client)):
        (tmp_path / f"{name}.py").write_text(text)
    workers = [
        subprocess.Popen(command, cwd=tmp_path, env=environ, stderr=subprocess.DEVNULL)
        for command in (
            [sys.executable, "-m", "byrote.sdk", "shop:handlers"],
            [sys.executable, "own.py"],
        )
    ]
    alive = """select count(*) from byrote_workers
               where 'greet@1' = any (tasks) and worker_id not like 'service-%'"""
    try:
        until(lambda: db.execute(alive).fetchone() == (2,), 30)
        done = subprocess.run(
            [sys.executable, "client.py"],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stdout) == (0, "Hello, Ada!\n5050\n"), done.stderr
        exec(hooks + traced, {})  # noqa: S102 -- our own page.
        for worker in workers:
            worker.terminate()
        assert [worker.wait(20) for worker in workers] == [0, 0]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
        service.kill()


def test_a_worker_started_wrongly_explains_the_right_way(tmp_path: Path) -> None:
    def said(*arguments: str, **environ: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "byrote.sdk", *arguments],
            cwd=tmp_path,
            env={**os.environ, **environ},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stderr

    here = "http://127.0.0.1:1"
    assert said() == (2, "usage: python -m byrote.sdk module:handlers [--drain]\n")
    assert said("shop:handlers")[0] == 2
    assert "set BYROTE_SERVICE_URL" in said("shop:handlers")[1]
    code, message = said("nowhere:handlers", BYROTE_SERVICE_URL=here)
    assert (code, "No module 'nowhere'" in message) == (2, True)
