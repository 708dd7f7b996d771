# SPDX-License-Identifier: MIT
"""No error about a database quotes a password, wherever it was written."""

import asyncio
import traceback

import pytest
from psycopg_pool import ConnectionPool

from byrote import App
from byrote.core.errors import ByroteError, PoolExhausted

SECRET = "hunter2%2Fsecret"  # noqa: S105 -- what must not be shown.
NOWHERE = "127.0.0.1:1/nothing"
URLS = [
    f"postgresql://shop:{SECRET}@{NOWHERE}",
    f"postgresql+asyncpg://shop:{SECRET}@{NOWHERE}",
    f"postgresql://shop@{NOWHERE}?password={SECRET}",
    f"postgresql://{NOWHERE}?user=shop&password={SECRET}&sslpassword={SECRET}",
    f"host=127.0.0.1 port=1 dbname=nothing user=shop password={SECRET}",
    f"host=127.0.0.1 port=1 dbname=nothing user=shop password='{SECRET}",
    f"postgresql://shop:{SECRET}@@{NOWHERE}",
    f"postgresql://shop:x/{SECRET}@{NOWHERE}",
    f"mysql://shop:{SECRET}@{NOWHERE}",
    f"postgresql://shop:{SECRET}@{NOWHERE}?pasword={SECRET}",
    "postgresql://shop@127.0.0.1:1/nothing",
]


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("schema", [None, "queue"])
def test_no_error_of_an_app_shows_it(
    url: str, schema: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", SECRET)
    app = App(url, schema=schema, enqueue_patience="1ms")
    task = app.task(name="t")(lambda: None)

    async def later() -> None:
        await task.aenqueue()

    with pytest.raises(ByroteError) as sync:
        task.enqueue()
    with pytest.raises(ByroteError) as on_a_loop:
        asyncio.run(later())
    shown = [*traceback.format_exception(sync.value), *traceback.format_exception(on_a_loop.value)]

    assert "hunter2" not in "".join(shown)


def test_no_error_of_a_pool_shows_it() -> None:
    pool = ConnectionPool(URLS[0], min_size=0, max_size=1, open=True)
    try:
        with pytest.raises(PoolExhausted) as raised:
            App(pool=pool, enqueue_patience="50ms").task(name="t")(lambda: None).enqueue()
    finally:
        pool.close()

    assert "hunter2" not in "".join(traceback.format_exception(raised.value))
