# SPDX-License-Identifier: MIT
"""The demo's ending: one run verified with the code that ran it, and with that code changed.

Both are commands a user would type, and the demo reports their output.
"""

import difflib
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import msgspec

from byrote.core.replay.verdict import Replayed
from byrote.core.run import Run
from byrote.demo import changed, tasks
from byrote.lab.bench.stage import StageFailed, environment

PATIENCE_S = 30.0
EXPECTED = {
    "byrote.demo.tasks:app": ("same", 0),
    "byrote.demo.changed:app": ("differs", 3),
}
"""The verdict and the exit code that the code of each app must lead to."""


class Verified(msgspec.Struct, frozen=True):
    """A run executed again by one app's code, and the verdict on it."""

    command: str
    code: Sequence[str]
    """Lines of code changed since the run; empty for the same code."""
    exit_code: int
    verdict: Replayed
    ok: bool


@contextmanager
def verifying(
    run: Run, url: str, folder: Path, settings: Mapping[str, str]
) -> Iterator[Callable[[], list[Verified]]]:
    """Verify a run with each app in the background; yields a function that awaits the verdicts."""
    environ = environment(url, settings)
    with ThreadPoolExecutor(len(EXPECTED)) as pool:
        under_way = [pool.submit(_verify, run, app, environ, folder) for app in EXPECTED]
        yield lambda: [done.result() for done in under_way]


def _verify(run: Run, app: str, environ: dict[str, str], folder: Path) -> Verified:
    words = ["replay", run.id, "--verify", "--app", app]
    done = subprocess.run(  # noqa: S603 -- our own module, our own arguments.
        [sys.executable, "-m", "byrote.cli.main", *words, "--json"],
        env=environ,
        cwd=folder,
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
    )
    try:
        verdict: Replayed = msgspec.json.decode(done.stdout, type=Replayed)
    except msgspec.DecodeError:
        errors = done.stderr.decode(errors="replace").strip()[-600:]
        raise StageFailed(f"The replay ended with code {done.returncode}: {errors}") from None
    found = str(verdict.__struct_config__.tag), done.returncode
    code = code_change() if app == "byrote.demo.changed:app" else []
    ok = found == EXPECTED[app]
    return Verified(f"byrote {' '.join(words)}", code, done.returncode, verdict, ok)


def code_change() -> list[str]:
    """The lines of the task that are not the same in the changed code."""
    old, new = (
        inspect.getsource(task.function).splitlines() for task in (tasks.invoice, changed.invoice)
    )
    diff = difflib.unified_diff(old, new, lineterm="", n=0)
    return [line for line in diff if not line.startswith(("---", "+++", "@@"))]
