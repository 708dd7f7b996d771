# SPDX-License-Identifier: MIT
"""The files of docs/how-to/deploy-worker.md can be read by the programs that they are for."""

import configparser
import json
import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest
import yaml

from byrote.cli.root import root
from tests.docs.test_readme import blocks

PAGE = "docs/how-to/deploy-worker.md"


def parsed(words: list[str]) -> dict[str, object]:
    """The options of a `byrote …` command as the command itself reads them."""
    command: click.Command = root
    assert Path(words[0]).name == "byrote"
    rest = words[1:]
    while isinstance(command, click.Group):
        found = command.get_command(click.Context(command), rest[0])
        assert found is not None, words
        command, rest = found, rest[1:]
    return dict(command.make_context("byrote", rest).params)


def seconds(text: object) -> int:
    return int(str(text).removesuffix("s"))


@pytest.mark.pure
def test_the_unit_waits_longer_than_the_worker_needs() -> None:
    [unit] = blocks(PAGE, "ini")
    read = configparser.ConfigParser(interpolation=None, strict=False)
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read_string(unit)
    options = parsed(shlex.split(read["Service"]["ExecStart"]))

    assert seconds(read["Service"]["TimeoutStopSec"]) > seconds(options["grace"])


@pytest.mark.needs("systemd-analyze")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    [unit] = blocks(PAGE, "ini")
    # The program and the user of the page are not on this machine.
    here = re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", unit).replace("User=shop\n", "")
    file = tmp_path / "shop-worker@.service"
    file.write_text(here, encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(file)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert "shop-worker" not in done.stderr, done.stderr


@pytest.mark.pure
def test_the_manifests_start_commands_that_exist() -> None:
    [text] = blocks(PAGE, "yaml")
    migrating, worker = yaml.safe_load_all(text)
    pod = worker["spec"]["template"]["spec"]
    [container] = pod["containers"]
    options = parsed([*container["command"], *container["args"]])
    [job] = migrating["spec"]["template"]["spec"]["containers"]

    parsed(job["command"])
    assert (
        worker["spec"]["selector"]["matchLabels"]
        == worker["spec"]["template"]["metadata"]["labels"]
    )
    assert pod["terminationGracePeriodSeconds"] > seconds(options["grace"])


@pytest.mark.pure
def test_the_container_starts_the_worker_itself() -> None:
    [text] = blocks(PAGE, "dockerfile")
    [command] = [line.removeprefix("CMD ") for line in text.splitlines() if line.startswith("CMD")]

    assert parsed(json.loads(command))["hands"] == 2
