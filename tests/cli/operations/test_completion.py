# SPDX-License-Identifier: MIT
"""Completion in real shells, and the nearest name for a mistyped one."""

import subprocess

import pytest

from tests.cli.console import byrote

ASK = """
{script}
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_byrote
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completed(*words: str) -> list[str]:
    """What bash offers; PATH is empty, so the script can start nothing."""
    quoted = " ".join(f"'{word}'" for word in words)
    text = ASK.format(script=byrote("completion", "bash").out, words=quoted)
    done = subprocess.run(
        ["/bin/bash", "--norc", "-c", text],
        env={"PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("byrote", "wor"), ["worker", "workers"]),
        (("byrote", "runs", "re"), ["retry"]),
        (("byrote", "runs", "list", "--sta"), ["--status"]),
        (("byrote", "runs", "list", "--json", "--status", "w"), ["waiting"]),
        (("byrote", "queues", "--js"), ["--json"]),
        (("byrote", "queues", "events", "mail", "f"), ["few"]),
        (("byrote", "completion", "z"), ["zsh"]),
    ],
)
def test_bash_completes_without_starting_anything(words: tuple[str, ...], found: list[str]) -> None:
    assert completed(*words) == found


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_get_every_command(shell: str) -> None:
    out = byrote("completion", shell).out

    assert "byrote runs list" in out
    assert "--keep-done" in out


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("woker",), "'worker'"),
        (("runs", "lst"), "'list'"),
        (("queues", "purg"), "'purge'"),
        (("dead", "requeu"), "'requeue'"),
        (("doctor", "--jsn"), "'--json'"),
        (("runs", "retry", "--snce", "1h"), "'--since'"),
        (("schedules", "paus"), "'pause'"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_nearest(words: tuple[str, ...], near: str) -> None:
    shown = byrote(*words)

    assert shown.code == 2
    assert near in shown.err.partition("Did you mean")[2]
