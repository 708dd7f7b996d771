# SPDX-License-Identifier: MIT
import re
from typing import Any

import psycopg
import pytest

from byrote.core.schedule.schedule import make_schedule
from byrote.core.spec import Delivery, describe
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.cli.console import Said, byrote
from tests.support import run_of

Database = psycopg.Connection[Any]


def add(url: str, *words: str, name: str = "nightly") -> Said:
    return byrote("schedules", "add", name, "report", *words, url=url)


def from_code(db: Database, name: str = "nightly") -> None:
    """A schedule that an app defines."""
    said = make_schedule(name, describe("t", 1, [], {}, delivery=Delivery()), cron="0 3 * * *")
    [now] = fetch(db, queries.now())
    fetch(db, queries.announce(said, now))


def test_a_schedule_is_added_listed_and_shown(url: str) -> None:
    words = ('{"b": 1.0, "a": -0.0}', "--args", "[ 1 ]", "--cron", "0 3 * * *", "--queue", "q")
    more = ("--zone", "Europe/Berlin", "--priority", "5", "--attempts", "3", "--label", "team=a")
    added = add(url, *words, *more, "--timeout", "30s", "--jitter", "5m")
    [row] = byrote("schedules", "--json", url=url).objects
    table = byrote("schedules", "list", url=url).out.splitlines()
    shown = byrote("schedules", "show", "nightly", url=url).out
    whole = byrote("schedules", "show", "nightly", "--json", url=url).object

    assert added.code == 0
    assert re.fullmatch(r"nightly is due next at 20\d\d-\d\d-\d\dT0[12]:00:00Z\.\n", added.out)
    assert (row["timing"], row["zone"], row["origin"]) == ("0 3 * * *", "Europe/Berlin", "hand")
    assert (row["queue"], row["priority"], row["max_attempts"]) == ("q", 5, 3)
    assert (row["timeout_s"], row["jitter_s"], row["labels"]) == (30.0, 300.0, {"team": "a"})
    assert table[1].split()[:2] == ["nightly", "on"]
    assert '{"b": 1.0, "a": -0.0}' in shown
    assert shown.count("\nthen ") == len(whole["ticks"]) == 5
    assert whole["ticks"][0] == whole["next_at"]


def test_what_is_there_is_replaced_only_on_purpose(url: str) -> None:
    add(url, "--every", "10m")
    refused = add(url, "--every", "20m")
    replaced = add(url, "--every", "20m", "--replace", "--json")

    assert refused.code == 2
    assert "--replace" in refused.err
    assert replaced.object["timing"] == "every 20m"


def test_a_delay_is_counted_by_the_databases_clock(url: str) -> None:
    said = add(url, "--at", "10m", "--json").object

    assert said["timing"] == f"at {said['next_at'].replace('Z', '+00:00')}"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ((), "one of cron, every and at"),
        (("--cron", "0 3 * * *", "--every", "1h"), "one of cron, every and at"),
        (("--cron", "61 * * * *"), "five fields"),
        (("--cron", "0 3 * * *", "--zone", "Mars/Base"), "Europe/Berlin"),
        (("--every", "10ms"), "between 1 s"),
        (("--at", "2020-01-01T00:00Z"), "past"),
        (("--every", "1h", "--catch-up", "all"), "overlap"),
        (("--every", "1h", "--label", "tick=x"), "own"),
        (("[1]", "--every", "1h"), "an object"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_kept(
    url: str, words: tuple[str, ...], hint: str
) -> None:
    said = add(url, *words)

    assert said.code == 2
    assert hint in said.err
    assert byrote("schedules", "--json", url=url).objects == []


def test_pause_and_resume(url: str) -> None:
    add(url, "--every", "1h")
    paused = byrote("schedules", "pause", "nightly", url=url)
    again = byrote("schedules", "pause", "nightly", "--json", url=url).object
    shown = byrote("schedules", "show", "nightly", url=url).out
    resumed = byrote("schedules", "resume", "nightly", url=url)

    assert paused.out == "nightly is paused.\n"
    assert again["state"] == "paused"
    assert "\nthen " not in shown
    assert resumed.out.startswith("nightly is due next at ")


def test_the_replacement_of_a_paused_schedule_stays_paused(url: str) -> None:
    add(url, "--every", "1h")
    byrote("schedules", "pause", "nightly", url=url)

    assert add(url, "--every", "2h", "--replace").out == "nightly is paused.\n"


def test_a_run_now_is_made_unless_one_is_unfinished(url: str, db: Database) -> None:
    add(url, '{"days": 1}', "--every", "1h")
    first = byrote("schedules", "run", "nightly", "--json", url=url).object
    second = byrote("schedules", "run", "nightly", url=url)
    [run] = fetch(db, queries.runs(labels={"schedule": "nightly"}))
    run = run_of(db, run.id)

    assert first == {"id": run.id, "created": True}
    assert (second.out, run.kwargs) == (f"{run.id}\n", {"days": 1})
    assert "has not ended" in second.err


def test_what_an_app_defines_is_removed_only_on_purpose(url: str, db: Database) -> None:
    from_code(db)
    add(url, "--every", "1h", name="own")
    refused = byrote("schedules", "remove", "nightly", url=url)
    forced = byrote("schedules", "remove", "nightly", "--force", url=url)
    own = byrote("schedules", "remove", "own", "--json", url=url)

    assert refused.code == 2
    assert "Pause it" in refused.err
    assert (forced.out, own.object) == ("nightly is removed.\n", {"name": "own", "removed": True})


@pytest.mark.parametrize("command", ["show", "pause", "resume", "run", "remove"])
def test_an_unknown_schedule_is_not_found_and_the_known_ones_are_named(
    url: str, db: Database, command: str
) -> None:
    from_code(db)
    said = byrote("schedules", command, "nihgtly", url=url)

    assert said.code == 4
    assert said.err == "byrote: No schedule named 'nihgtly'. Known: nightly.\n"


def test_an_empty_list_explains_how_to_add_a_schedule(url: str) -> None:
    assert "byrote schedules add" in byrote("schedules", url=url).out
