# SPDX-License-Identifier: MIT
import re
from pathlib import Path

import pytest

from byrote import App
from byrote.assembly.settings import Settings, check_variables, resolve
from byrote.assembly.variables import ENVIRONMENT_ONLY, PASSED_ON, TESTS, known_variables
from byrote.cli.root import COMMANDS, REPORTING
from byrote.core.errors import BadOption
from tests.cli.console import NOBODY, byrote
from tests.tidy.sources import ROOT, SOURCE, python_files

VARIABLE = re.compile(r"\bBYROTE_[A-Z0-9_]*[A-Z0-9](?:_\b)?")
TABLE = SOURCE / "assembly" / "variables.py"


def named_in(paths: list[Path]) -> set[str]:
    return {name for path in paths for name in VARIABLE.findall(path.read_text(encoding="utf-8"))}


def test_the_table_has_every_variable_that_the_source_names() -> None:
    found = named_in([path for path in python_files("src") if path != TABLE])

    assert found - known_variables(Settings.__struct_fields__) == set()
    assert {*ENVIRONMENT_ONLY, *PASSED_ON} - found == set()


def test_variables_of_tests_have_their_own_prefix() -> None:
    read = re.compile(r"environ(?:\.get\(|\[)\"(BYROTE_\w+)\"")
    found = {
        name
        for path in python_files("tests", "bench")
        for name in read.findall(path.read_text(encoding="utf-8"))
    }
    strange = found - known_variables(Settings.__struct_fields__)

    assert {name for name in strange if not name.startswith(TESTS)} == set()
    assert strange


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("BYROTE_CONCURENCY", "Do you mean BYROTE_CONCURRENCY?"),
        ("BYROTE_TOKENS", "Do you mean BYROTE_SERVICE_TOKEN?"),
        ("BYROTE_PGHOME", "Do you mean BYROTE_PG_HOME?"),
        ("BYROTE_ZZZ", "Unset it; `byrote config show` lists the settings"),
        ("BYROTE_", "Unset it"),
    ],
)
def test_an_unknown_variable_is_an_error_with_the_nearest_name(name: str, advice: str) -> None:
    with pytest.raises(BadOption) as refused:
        check_variables({"PATH": "/bin", name: ""})

    assert str(refused.value).startswith(f"Unknown variable {name}. {advice}")


@pytest.mark.parametrize(
    "name",
    [
        "BYROTE_HANDS",
        "BYROTE_DATABASE_URL_FILE",
        "BYROTE_PG_HOME",
        "BYROTE_RUN_ID",
        "BYROTE_TEST_DATABASE_URL",
        "BYROTE_SERVICE_HOST",
        "BYROTE_SERVICE_PORT_HTTP",
        "BYROTE_PORT",
        "BYROTE_PORT_8700_TCP_ADDR",
        "BYROTE_API_SERVICE_HOST",
        "BYROTE_API_PORT_8700_TCP",
        "MY_BYROTE_HAND",
    ],
)
def test_variables_of_byrote_and_of_kubernetes_are_fine(name: str) -> None:
    check_variables({name: "x"})


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - REPORTING))
def test_every_command_refuses_an_unknown_variable(command: str) -> None:
    said = byrote(command, "--json", url=NOBODY, BYROTE_HAND_S="5")

    assert (said.code, said.failure["error"]) == (2, "bad_option")
    assert "Do you mean BYROTE_HANDS?" in said.failure["message"]


def test_the_short_name_of_the_token_is_read_with_one_warning(tmp_path: Path) -> None:
    short, full = {"BYROTE_TOKEN": "byr_short"}, {"BYROTE_SERVICE_TOKEN": "byr_full"}
    with pytest.warns(UserWarning, match="set BYROTE_SERVICE_TOKEN instead") as warned:
        found = resolve(environ=short, folder=tmp_path)

    assert found.settings.service_token == short["BYROTE_TOKEN"]
    assert [*found.origins.values()].count("environment BYROTE_TOKEN") == 1
    assert len(warned) == 1
    assert "byr_short" not in str(warned[0].message)
    # Without a warning, which would be an error here: the short name does not count.
    both = resolve(environ=short | full, folder=tmp_path).settings
    passed = resolve({"service_token": "byr_arg"}, environ=short, folder=tmp_path).settings
    assert (both.service_token, passed.service_token) == ("byr_full", "byr_arg")


def test_help_is_shown_whatever_the_variables() -> None:
    assert byrote("worker", "--help", BYROTE_HAND_S="5").code == 0
    assert byrote("--help", BYROTE_HAND_S="5").code == 0


def test_an_app_refuses_an_unknown_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BYROTE_QUEUS", "mail")

    with pytest.raises(BadOption, match=r"BYROTE_QUEUS\. Do you mean BYROTE_QUEUES\?"):
        _ = App(NOBODY).store


def test_the_page_has_every_setting_and_variable() -> None:
    text = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `(\w+)`[,| ]", text, re.MULTILINE))

    assert rows == {*Settings.__struct_fields__, *ENVIRONMENT_ONLY}
