# SPDX-License-Identifier: MIT
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from byrote.assembly.setting_values import PARSERS, read_queues, read_size
from byrote.assembly.settings import ALIASES, Settings, resolve
from byrote.core.errors import BadOption

URL = "postgresql://host/db"


def test_defaults_are_reported_as_defaults(tmp_path: Path) -> None:
    resolved = resolve(environ={}, folder=tmp_path)

    assert resolved.settings == Settings()
    assert set(resolved.origins.values()) == {"default"}
    assert set(resolved.origins) == set(Settings.__struct_fields__)


def test_flags_beat_the_environment_and_the_environment_beats_files(tmp_path: Path) -> None:
    (tmp_path / "byrote.toml").write_text("hands = 1\nconcurrency = 1\nthreads = 1\n")
    environ = {"BYROTE_CONCURRENCY": "2", "BYROTE_THREADS": "2"}
    resolved = resolve({"threads": 3, "hands": None}, environ=environ, folder=tmp_path)
    found = resolved.settings

    assert (found.hands, found.concurrency, found.threads) == (1, 2, 3)
    assert resolved.origins["hands"] == "byrote.toml"
    assert resolved.origins["concurrency"] == "environment BYROTE_CONCURRENCY"
    assert resolved.origins["threads"] == "flag"


def test_a_project_file_is_read_from_a_folder_above(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.byrote]\nlease = "45s"\n')
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    resolved = resolve(environ={}, folder=below)

    assert resolved.settings.lease == timedelta(seconds=45)
    assert resolved.origins["lease"] == "pyproject.toml"


def test_our_own_file_is_read_before_the_projects(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.byrote]\nhands = 1\n")
    (tmp_path / "byrote.toml").write_text("hands = 2\n")

    assert resolve(environ={}, folder=tmp_path).settings.hands == 2


@pytest.mark.parametrize(
    ("alias", "raw", "name", "value"),
    [
        ("WORKER_ID", "w1", "worker_id", "w1"),
        ("POLL_INTERVAL", "2", "poll_interval", timedelta(seconds=2)),
        ("QUEUE_NAME", "mail", "queues", {"mail": 1}),
        ("PYTHON_PATH", "python3", "python_path", "python3"),
    ],
)
def test_short_names_count_beside_a_short_database_url_and_ours_win(
    tmp_path: Path, alias: str, raw: str, *, name: str, value: object
) -> None:
    beside = {"DATABASE_URL": URL}
    short = resolve(environ={**beside, alias: raw}, folder=tmp_path)
    assert getattr(short.settings, name) == value
    assert short.origins[name] == f"environment {alias}"
    assert short.ignored == {}

    ours = f"BYROTE_{name.upper()}"
    both = resolve(environ={**beside, alias: "7", ours: raw}, folder=tmp_path)
    assert getattr(both.settings, name) == value
    assert both.origins[name] == f"environment {ours}"


@pytest.mark.parametrize(
    "named",
    [
        {},
        {"BYROTE_DATABASE_URL": URL},
        {"DATABASE_URL": "postgresql://other/db", "BYROTE_DATABASE_URL": URL},
        {"DATABASE_URL": URL, "BYROTE_DATABASE_URL_FILE": "url"},
    ],
)
def test_short_names_of_other_programs_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: dict[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "url").write_text(URL)
    resolved = resolve(environ={**named, **dict.fromkeys(ALIASES, "7")}, folder=tmp_path)

    assert {resolved.origins[name] for name in ALIASES.values()} == {"default"}
    assert resolved.ignored == {name: alias for alias, name in ALIASES.items()}
    assert resolved.settings.database_url == (URL if named else None)


def test_a_secret_may_be_read_from_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "url"
    secret.write_text(f"{URL}\n")
    environ = {"BYROTE_DATABASE_URL_FILE": str(secret)}
    resolved = resolve(environ=environ, folder=tmp_path)

    assert resolved.settings.database_url == URL
    assert resolved.origins["database_url"] == "environment BYROTE_DATABASE_URL_FILE"


def test_a_secrets_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    environ = {"BYROTE_DATABASE_URL_FILE": str(tmp_path / "none")}

    with pytest.raises(BadOption, match="BYROTE_DATABASE_URL_FILE cannot be read"):
        resolve(environ=environ, folder=tmp_path)


def test_libpqs_own_variables_name_a_database(tmp_path: Path) -> None:
    resolved = resolve(environ={"PGHOST": "db.example"}, folder=tmp_path)

    assert resolved.settings.database_url == "postgresql://"
    assert "PGHOST" in resolved.origins["database_url"]


BAD = {
    "pooled": "perhaps",
    "pool_size": "0",
    "schema": "pg_mine",
    "queues": "a b",
    "worker_id": "a b",
    "hands": "two",
    "concurrency": "-3",
    "threads": "65",
    "lease": "0.5s",
    "grace": "soon",
    "enqueue_patience": "later",
    "poll_interval": "-1",
    "listen": "2",
    "claims": "slow",
    "max_tasks": "0",
    "max_rss": "much",
    "executor": "cloud",
    "log_format": "xml",
    "log_level": "loud",
    "log_tracebacks": "perhaps",
    "payload_max": "0",
    "payload_mode": "pigeon",
    "artifact_max": "lots",
    "keep_events": "1h",
    "chain_events": "maybe",
    "deterministic": "mostly",
}


@pytest.mark.parametrize(("name", "raw"), BAD.items())
def test_a_bad_value_names_its_source_and_its_setting(tmp_path: Path, name: str, raw: str) -> None:
    key = f"BYROTE_{name.upper()}"
    with pytest.raises(BadOption) as refused:
        resolve(environ={key: raw}, folder=tmp_path)

    assert key in str(refused.value)


def test_every_setting_but_plain_texts_is_tried_with_a_bad_value() -> None:
    texts = {name for name, kind in Settings.__annotations__.items() if kind == str | None}

    assert set(BAD) == set(Settings.__struct_fields__) - (texts - set(PARSERS))


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("hands", "two", "write a whole number from 1 to 1000, not 'two'"),
        ("threads", "65", "write a whole number from 1 to 64, not '65'"),
        ("hands", "null", "write a whole number from 1 to 1000, not 'null'"),
        ("claims", "slow", "choose one of durable, fast, not 'slow'"),
        ("listen", "2", "write true or false, not '2'"),
        ("lease", "0.5s", "a lease shorter than a second cannot be renewed in time; not 0.5s"),
        ("max_rss", "much", "write a size like 512MB or 2GB, not 'much'"),
    ],
)
def test_a_bad_value_is_quoted_with_its_limits(
    tmp_path: Path, name: str, raw: str, message: str
) -> None:
    with pytest.raises(BadOption) as refused:
        resolve({name: raw}, environ={}, folder=tmp_path)

    assert str(refused.value) == f"--{name.replace('_', '-')}: {message}"


def test_a_long_bad_value_is_shortened(tmp_path: Path) -> None:
    with pytest.raises(BadOption) as refused:
        resolve({"hands": "9" * 10_000}, environ={}, folder=tmp_path)

    assert len(str(refused.value)) < 250


@pytest.mark.parametrize(
    ("raw", "value"),
    [("true", True), ("ON", True), ("1", True), (" yes ", True), ("no", False), ("Off", False)],
)
def test_switches_are_read_as_people_write_them(tmp_path: Path, raw: str, value: object) -> None:
    environ = {"BYROTE_LISTEN": raw, "BYROTE_HANDS": " 3 "}
    settings = resolve(environ=environ, folder=tmp_path).settings

    assert (settings.listen, settings.hands) == (value, 3)


def test_a_secret_of_the_wrong_type_is_not_quoted(tmp_path: Path) -> None:
    (tmp_path / "byrote.toml").write_text("service_token = 123456\n")

    with pytest.raises(BadOption, match="service_token: write a text") as refused:
        resolve(environ={}, folder=tmp_path)
    assert "123456" not in str(refused.value)


def test_a_misspelt_setting_names_the_nearest_one(tmp_path: Path) -> None:
    (tmp_path / "byrote.toml").write_text("concurency = 5\n")

    with pytest.raises(BadOption, match=r"'concurency'\. Do you mean 'concurrency'\?"):
        resolve(environ={}, folder=tmp_path)


@pytest.mark.parametrize(
    "text", ["hands = 2.7", "hands = true", "unheard_of = 1", "hands = ", "lease = []"]
)
def test_a_bad_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "byrote.toml").write_text(text)

    with pytest.raises(BadOption, match=r"byrote\.toml"):
        resolve(environ={}, folder=tmp_path)


def test_an_empty_variable_counts_as_unset(tmp_path: Path) -> None:
    resolved = resolve(environ={"BYROTE_HANDS": "", "DATABASE_URL": ""}, folder=tmp_path)

    assert resolved.settings == Settings()


@pytest.mark.parametrize(
    ("raw", "queues"),
    [
        ("default", {"default": 1}),
        ("mail=3,default", {"mail": 3, "default": 1}),
        (" a=2 , b ", {"a": 2, "b": 1}),
        (["a", "b=5"], {"a": 1, "b": 5}),
        ({"a": 4}, {"a": 4}),
    ],
)
def test_queues_may_be_written_in_several_ways(raw: Any, queues: dict[str, int]) -> None:
    assert read_queues(raw) == queues


@pytest.mark.parametrize("raw", ["", ",", "a=0", "a=1001", "a=x", "a b", [], {"a": 0}])
def test_queues_that_make_no_sense_are_refused(raw: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_queues(raw)


@pytest.mark.parametrize(
    ("raw", "size"),
    [("512MB", 512 << 20), ("2GiB", 2 << 30), ("64k", 64 << 10), ("1000", 1_000), (7, 7)],
)
def test_sizes_are_read_as_people_write_them(raw: Any, size: int) -> None:
    assert read_size(raw) == size


def test_a_queue_may_have_its_own_payload_limit(tmp_path: Path) -> None:
    environ = {"BYROTE_PAYLOAD_MAX": "1MB,media=16MB"}
    settings = resolve(environ=environ, folder=tmp_path).settings

    assert settings.payload_limit("media") == 16 * 1024 * 1024
    assert settings.payload_limit("default") == 1024 * 1024


def test_the_log_has_its_own_table_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "byrote.toml").write_text('[events]\nchain = true\nkeep = "7d"\n')
    settings = resolve(environ={}, folder=tmp_path).settings

    assert (settings.chain_events, settings.keep_events) == (True, timedelta(days=7))
    (tmp_path / "byrote.toml").write_text("events.chian = true\n")
    with pytest.raises(BadOption, match="chian_events"):
        resolve(environ={}, folder=tmp_path)
