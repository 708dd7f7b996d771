# SPDX-License-Identifier: MIT
"""The app of docs/how-to/fastapi.md is served, with a worker; nothing is left open at its end."""

import asyncio
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fastapi.testclient import TestClient
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from tests.docs.test_readme import blocks, byrote
from tests.examples.fastapi_shop import new_database, sqlalchemy_url
from tests.support import until

# The second order of an address fails at its commit, when its run has been inserted.
LATE = (
    "alter table orders drop constraint orders_email_key",
    "alter table orders add unique (email) deferrable initially deferred",
)
OTHERS = """
select count(*)
from pg_stat_activity
where datname = current_database()
  and pid <> pg_backend_pid()
  and backend_type = 'client backend'
"""


@pytest.fixture
def shop(
    server_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Any, Path, str]]:
    """The page's modules in a folder, on a migrated database."""
    for text in blocks("docs/how-to/fastapi.md", "python"):
        name = text.splitlines()[0].removeprefix("# ")
        (tmp_path / name).write_text(text, encoding="utf-8")
    name = f"fastapi_page_{tmp_path.parent.name.replace('-', '_')}"
    with new_database(server_url, name) as plain:
        monkeypatch.delenv("BYROTE_DATABASE_URL", raising=False)
        monkeypatch.setenv("DATABASE_URL", sqlalchemy_url(server_url, name))
        monkeypatch.syspath_prepend(tmp_path)
        migrating = byrote("migrate", folder=tmp_path, url=plain)
        migrating.communicate(timeout=60)
        web = importlib.import_module("web")
        asyncio.run(create(web.Base, sqlalchemy_url(server_url, name)))
        yield web, tmp_path, plain
    for module in ("web", "tasks"):
        sys.modules.pop(module, None)


async def create(base: Any, url: str) -> None:
    engine: AsyncEngine = create_async_engine(url)
    async with engine.begin() as connection:
        await connection.run_sync(base.metadata.create_all)
        for change in LATE:
            await connection.exec_driver_sql(change)
    await engine.dispose()


def test_an_order_and_its_run_are_stored_together_and_the_end_is_clean(
    shop: tuple[Any, Path, str],
) -> None:
    web, folder, url = shop
    with TestClient(web.web, raise_server_exceptions=False) as client:
        run = client.post("/orders", params={"email": "a@b.c"}).json()["run"]
        twice = client.post("/orders", params={"email": "a@b.c"})
        worker = byrote("worker", "tasks:app", "--drain", "--hands", "1", folder=folder, url=url)
        worker.communicate(timeout=60)
        status = client.get(f"/runs/{run}").json()
        unknown = client.get("/runs/00000000-0000-0000-0000-000000000000")
        runs = web.tasks.app.runs()

    assert status == {"status": "SUCCESSFUL", "result": "receipt 1 sent to a@b.c"}
    assert twice.status_code == 500
    assert [one.id for one in runs] == [run]
    assert unknown.status_code == 404
    with psycopg.connect(url, autocommit=True) as db:
        until(lambda: db.execute(OTHERS).fetchone() == (0,))
