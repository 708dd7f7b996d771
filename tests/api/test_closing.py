# SPDX-License-Identifier: MIT
"""An app leaves no connection behind, also at the end of an event loop."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import asyncio, gc, sys
from contextlib import asynccontextmanager
from byrote import App

app = App(sys.argv[1])

@app.task
def add(n: int) -> int:
    return n

async def serve():
    runs = await asyncio.gather(*(add.aenqueue(n) for n in range(4)))
    assert len(await app.aruns()) >= 4
    add.enqueue(5)
    return runs

@asynccontextmanager
async def lifespan(_site):
    async with app:
        yield

async def in_a_lifespan():
    async with lifespan(None):
        await serve()

async def closed_by_hand():
    await serve()
    await app.aclose()

async def left_open():
    await serve()

WAYS = {
    "lifespan": lambda: asyncio.run(in_a_lifespan()),
    "aclose": lambda: asyncio.run(closed_by_hand()),
    "twice": lambda: (asyncio.run(in_a_lifespan()), asyncio.run(in_a_lifespan())),
    "nothing": lambda: asyncio.run(left_open()),
}
WAYS[sys.argv[2]]()
app.__dict__.clear()
gc.collect()
"""


def warnings_of(url: str, way: str) -> str:
    """Run the program with all warnings on; returns what it wrote to standard error."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, url, way],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    return done.stderr + ("" if done.returncode == 0 else f"exit {done.returncode}")


@pytest.mark.parametrize("way", ["lifespan", "aclose", "twice"])
def test_a_program_that_closes_its_app_gets_no_warning(url: str, way: str) -> None:
    assert warnings_of(url, way) == ""


def test_a_program_that_does_not_is_warned(url: str) -> None:
    """Otherwise the test above would find nothing."""
    assert "ResourceWarning" in warnings_of(url, "nothing")
