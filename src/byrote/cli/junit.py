# SPDX-License-Identifier: MIT
"""Verdicts on replays as JUnit XML, which every CI system shows."""

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from byrote.cli.diff import change_line, summary
from byrote.cli.show import printable
from byrote.core.replay import Differs, NotReplayable, Replayed


def junit_xml(name: str, verdicts: Sequence[Replayed], seconds: float) -> str:
    """One test case per run: a failure where it differs, an error where it cannot be replayed."""
    failures = sum(isinstance(verdict, Differs) for verdict in verdicts)
    errors = sum(isinstance(verdict, NotReplayable) for verdict in verdicts)
    head = (
        f"<testsuite name={_quoted(f'byrote replay {name}')} tests={_quoted(len(verdicts))} "
        f"failures={_quoted(failures)} errors={_quoted(errors)} time={_quoted(f'{seconds:.3f}')}>"
    )
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', head, *map(_case, verdicts), "</testsuite>"]
    return "\n".join(lines) + "\n"


def _case(verdict: Replayed) -> str:
    head = f"  <testcase classname={_quoted(verdict.task or '')} name={_quoted(verdict.original)}"
    match verdict:
        case NotReplayable(why=why, reason=reason):
            inside = f"<error type={_quoted(why)} message={_quoted(reason)}/>"
        case Differs():
            message = f"{summary(verdict.result)}; replayed as {verdict.replay}"
            inside = (
                f'<failure type="differs" message={_quoted(message)}>'
                f"{escape(_text(verdict))}</failure>"
            )
        case _:
            return f"{head}/>"
    return f"{head}>{inside}</testcase>"


def _text(verdict: Differs) -> str:
    parts = {
        "result": verdict.result,
        "artifacts": verdict.artifacts,
        "provenance": verdict.provenance,
    }
    lines = [f"status: {verdict.status[0]} -> {verdict.status[1]}"]
    for name, part in parts.items():
        if part:
            lines += [name, *map(change_line, part.changes)]
    return _clean("\n".join(lines))


def _quoted(value: object) -> str:
    return quoteattr(_clean(str(value)))


def _clean(text: str) -> str:
    # XML has no form at all for most control characters, nor for what is no character.
    safe = printable(text)
    return "".join(char if char not in "\ufffe\uffff" else "?" for char in safe)
