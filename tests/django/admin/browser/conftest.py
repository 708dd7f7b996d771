# SPDX-License-Identifier: MIT
"""A real browser before a real server. Where either is missing, the message names what to install.

`make test-browser` brings Playwright; the browser is Debian's chromium (apt install chromium).
With BYROTE_TEST_SHOTS=folder, tests leave pictures of what they saw there.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.test import Client, override_settings
from django.test.testcases import LiveServerThread

from tests.programs import require, require_package

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("BYROTE_TEST_CHROMIUM") or next(
    filter(None, map(shutil.which, NAMES)), None
)
ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
POLICY = "default-src 'self'; img-src 'self' data:"
"""Nothing inline: neither scripts nor styles."""


class Strict(StaticFilesHandler):  # type: ignore[misc]
    """Serves the project as a careful site does, with a policy that forbids what is inline."""

    def get_response(self, request: Any) -> Any:
        answer = super().get_response(request)
        answer["Content-Security-Policy"] = POLICY
        return answer


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    api: Any = require_package("playwright.sync_api", "run make test-browser")
    if CHROMIUM is None:
        require("chromium")
    with pytest.MonkeyPatch.context() as mp, api.sync_playwright() as playwright:
        # Playwright's loop runs in this thread, and Django takes that for a coroutine's.
        mp.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def site(shop: dict[str, str]) -> Iterator[str]:
    """The address of the project, served by a separate thread."""
    server = LiveServerThread("127.0.0.1", Strict)
    server.daemon = True
    with override_settings(ALLOWED_HOSTS=["127.0.0.1"]):
        server.start()
        server.is_ready.wait()
        assert server.error is None
        yield f"http://127.0.0.1:{server.port}"
        server.terminate()


@pytest.fixture
def open_page(chromium: Any, site: str) -> Iterator[Callable[..., Any]]:
    """Opens the admin for a user; any error in the browser fails the test."""
    complaints: list[str] = []
    contexts = []

    def open_for(client: Client, **how: Any) -> Any:
        context = chromium.new_context(
            base_url=site, viewport={"width": 1300, "height": 900}, **how
        )
        contexts.append(context)
        session = client.cookies["sessionid"].value
        context.add_cookies([{"name": "sessionid", "value": session, "url": site}])
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: _complaint(said) and complaints.append(said.text))
        return page

    yield open_for
    for context in contexts:
        context.close()
    assert complaints == []


def _complaint(said: Any) -> bool:
    return said.type == "error" and not said.location["url"].endswith("/favicon.ico")


@pytest.fixture
def shoot() -> Callable[[Any, str], None]:
    """Takes a screenshot of a page, if that is requested."""
    folder = os.environ.get("BYROTE_TEST_SHOTS")

    def take(page: Any, name: str) -> None:
        if folder:
            page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)

    return take
