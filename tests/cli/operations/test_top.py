# SPDX-License-Identifier: MIT
import sys

import pytest

from tests.cli.console import byrote


def test_top_names_the_extra_that_a_service_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "byrote.sdk.client", raising=False)
    monkeypatch.setitem(sys.modules, "httpx2", None)
    shown = byrote("top", "--once", "--service", "http://127.0.0.1:1")

    assert shown.code != 0
    assert "pip install 'byrote[client]'" in shown.err


def test_top_refuses_an_address_that_is_not_http() -> None:
    assert byrote("top", "--once", "--service", "ftp://queue.example").code == 2
