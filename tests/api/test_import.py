# SPDX-License-Identifier: MIT
import json
import subprocess
import sys

import pytest

import byrote

LOOK = "import sys, json; {}; print(json.dumps(sorted(sys.modules)))"
SELDOM = {"psycopg", "psycopg_binary", "email", "zipfile", "importlib.metadata", "zoneinfo"}
"""What connects to a database, and what importlib.metadata brings along: 0.24 s and 9 MB."""
FORBIDDEN = {"django", "httpx", "requests", "aiohttp", "urllib3", "http.client", "redis", "uvicorn"}
HEAVY = {"psycopg", "msgspec", "asyncio", "click", "sqlite3"}


def modules_after(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", LOOK.format(statement)], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


def test_importing_byrote_is_light() -> None:
    """A tool that only asks for the version does not wait for a database driver."""
    assert not modules_after("import byrote") & (HEAVY | FORBIDDEN)


def test_the_app_imports_no_directories_and_no_worker() -> None:
    """A web process that only enqueues does not wait for code that only workers use."""
    unneeded = {"platformdirs", "byrote.worker.worker", "byrote.executors.hands.pool"}

    assert not modules_after("import byrote; byrote.App") & unneeded


def test_an_app_that_has_not_connected_has_no_driver() -> None:
    """A program that only defines tasks, and a hand, do without it."""
    loaded = modules_after("import byrote; app = byrote.App('postgresql://h/d'); app.task(print)")

    assert not loaded & (SELDOM | {"byrote.embedded.server", "byrote.store.runners.sync"})


def test_the_driver_is_imported_with_the_first_connection() -> None:
    assert "psycopg" in modules_after("import byrote; byrote.App('postgresql://h/d').store")


def test_using_byrote_imports_no_web_framework_and_no_http_client() -> None:
    everything = "; ".join(f"byrote.{name}" for name in byrote.__all__)

    assert not modules_after(f"import byrote; {everything}; byrote.App()") & FORBIDDEN


def test_every_public_name_can_be_had_and_no_other() -> None:
    for name in byrote.__all__:
        assert getattr(byrote, name).__name__ == name
    with pytest.raises(AttributeError, match="Celery"):
        _ = byrote.Celery
