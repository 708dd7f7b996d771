# SPDX-License-Identifier: MIT
from pathlib import Path

import pytest

from byrote.cli.database import masked
from tests.cli.console import byrote


def test_each_setting_has_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "byrote.toml").write_text('lease = "40s"\nhands = 3\n')
    monkeypatch.chdir(tmp_path)
    known = {"BYROTE_HANDS": "4", "POLL_INTERVAL": "2s", "DATABASE_URL": "postgresql://h/d"}
    said = byrote("config", "show", "--origin", "--json", **known)

    assert said.object["lease"] == {"value": 40.0, "origin": "byrote.toml"}
    assert said.object["hands"] == {"value": 4, "origin": "environment BYROTE_HANDS"}
    assert said.object["poll_interval"] == {"value": 2.0, "origin": "environment POLL_INTERVAL"}
    assert said.object["grace"] == {"value": 25.0, "origin": "default"}


def test_a_variable_without_prefix_that_does_not_count_is_shown() -> None:
    said = byrote("config", "show", "--origin", "--json", QUEUE_NAME="mail")

    assert said.object["queues"]["value"] is None
    assert said.object["queues"]["origin"] == (
        "default (QUEUE_NAME ignored: needs DATABASE_URL and no BYROTE_DATABASE_URL)"
    )


def test_an_unknown_variable_is_an_error_after_the_table() -> None:
    said = byrote("config", "show", BYROTE_CONCURENCY="5")

    assert said.code == 2
    assert "100" in next(row for row in said.out.splitlines() if row.startswith("concurrency"))
    assert "Unknown variable BYROTE_CONCURENCY. Do you mean BYROTE_CONCURRENCY?" in said.err


def test_the_table_shows_values_as_they_are_written() -> None:
    said = byrote("config", "show", BYROTE_QUEUES="mail=3,default", BYROTE_LEASE="90s")
    table = dict(line.split(maxsplit=1) for line in said.out.splitlines())

    assert (table["queues"], table["lease"]) == ("mail=3,default", "1m30s")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:hush@h:5/d", "postgresql://me:***@h:5/d"),
        (
            "postgresql://h/d?password=hush&options=%20y",
            "postgresql://h/d?password=***&options=%20y",
        ),
        ("postgresql://a@/b?host=/run/pg&port=1", "postgresql://a@/b?host=/run/pg&port=1"),
        ("postgresql://", "postgresql://"),
        ("host=h password=hush", "host=h password=***"),
        ("hush hush", "***"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert masked(url) == shown


def test_a_secret_is_hidden_wherever_it_came_from() -> None:
    said = byrote("config", "show", "--origin", url="postgresql://me:hush@h/d")

    assert "me:***@h/d  environment BYROTE_DATABASE_URL" in said.out
    assert "hush" not in said.out


def test_a_bad_value_names_its_source_and_is_wrong_usage() -> None:
    said = byrote("config", "show", "--json", BYROTE_LEASE="soon")

    assert said.code == 2
    assert said.failure["error"] == "bad_option"
    assert "environment BYROTE_LEASE: lease" in said.failure["message"]
