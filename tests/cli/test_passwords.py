# SPDX-License-Identifier: MIT
"""Whatever is wrong with a database URL, its password is shown nowhere."""

import contextlib

import click
import pytest

from byrote import App
from byrote.cli.errors import describe
from byrote.core.errors import BadOption
from tests.cli.console import byrote

WRONG = {
    "postgresql://me:hush hush@127.0.0.1:1/d": "a space as %20",
    "postgresql://me:hu@hush@127.0.0.1:1/d": "more than one @",
    "postgresql://me:hush/hush@127.0.0.1:1/d": "port that is not a number",
    "postgresql://me:hush%zz@127.0.0.1:1/d": "% as %25",
    "postgresql+asyncpg://me:hush hush@127.0.0.1:1/d": "a space as %20",
    "postgres+psycopg2://me:hu@hush@127.0.0.1:1/d": "more than one @",
    "postgresql+asyncpg://me:hush@127.0.0.1:1/d": "did not answer",
    "postgresql+://me:hush@127.0.0.1:1/d": "must begin with postgresql://",
    "mysql://me:hush@127.0.0.1:1/d": "Byrote runs on PostgreSQL only",
    "hush://me:x@127.0.0.1:1/d": "",
    "host=127.0.0.1 port=1 password=hush hush": "cannot be read",
    "host=127.0.0.1 port=1 password=hush dbname='d": "cannot be read",
    "postgresql://me:hush@127.0.0.1:1/d?frob=1": "cannot be read",
    "postgresql://me:hush@127.0.0.1:1/d": "did not answer",
    "me:hush@127.0.0.1/d": "cannot be read",
}


@pytest.mark.parametrize("url", WRONG)
@pytest.mark.parametrize(
    "words", [("runs", "list"), ("doctor",), ("config", "show"), ("migrate",), ("verify",)]
)
def test_no_command_shows_a_password(url: str, words: tuple[str, ...]) -> None:
    said = byrote(*words, url=url)

    if not url.startswith("hush"):
        assert "hush" not in said.out + said.err
    if words[0] != "config":
        assert said.code != 0
    if words == ("runs", "list"):
        assert WRONG[url] in said.err


@pytest.mark.parametrize("url", [url for url, said in WRONG.items() if "not answer" not in said])
def test_no_error_in_python_shows_a_password(url: str) -> None:
    with pytest.raises(BadOption) as error, contextlib.closing(App(url)) as app:
        assert app.address.redacted

    if not url.startswith("hush"):
        assert "hush" not in f"{error.value!r} {error.value.__context__!r}"


@pytest.mark.parametrize("kind", [click.UsageError, click.ClickException, RuntimeError, OSError])
def test_no_error_of_others_shows_a_password_on_the_command_line(kind: type[Exception]) -> None:
    shown = describe(kind("Cannot reach postgresql://me:hush@h/d"))

    assert shown.message.endswith("postgresql://me:***@h/d")
