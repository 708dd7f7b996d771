# SPDX-License-Identifier: MIT
"""Verdicts on replays as JUnit XML, which every CI system shows."""

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from byrote.cli.commands.runs.diff import change_line, summary
from byrote.core.json.diff import Changes
from byrote.core.replay.verdict import Differs, NotReplayable, Replayed, Same
from byrote.core.text.printable import printable

CHANGES_MAX = 20
"""Differences of each part of a run that are told."""


def suite_of(name: str, cases: Sequence[str], counts: Mapping[str, int], seconds: float) -> str:
    """The whole document: a case per run, failed where it differs, in error where it cannot."""
    head = (
        f"<testsuite name={_quoted(f'byrote replay {name}')} tests={_quoted(len(cases))} "
        f"failures={_quoted(counts['differs'])} errors={_quoted(counts['not replayable'])} "
        f"time={_quoted(f'{seconds:.3f}')}>"
    )
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *cases, "</testsuite>", ""])


def case_of(verdict: Replayed) -> str:
    """One run."""
    head = f"  <testcase classname={_quoted(verdict.task or '')} name={_quoted(verdict.original)}"
    match verdict:
        case NotReplayable(why=why, reason=reason):
            inside = f"<error type={_quoted(why)} message={_quoted(reason)}/>"
        case Differs():
            told = [f"{name} {summary(part)}" for name, part in _parts(verdict).items() if part]
            message = f"{', '.join(told)}; replayed as {verdict.replay}"
            inside = (
                f'<failure type="differs" message={_quoted(message)}>'
                f"{escape(_text(verdict))}</failure>"
            )
        case Same(withheld=()) | Same(withheld=[]):
            return f"{head}/>"
        case _:
            inside = ""
    if not isinstance(verdict, NotReplayable) and verdict.withheld:
        said = f"not sent: {', '.join(map(str, verdict.withheld))}"
        inside += f"<system-out>{escape(_clean(said))}</system-out>"
    return f"{head}>{inside}</testcase>"


def _parts(verdict: Differs) -> dict[str, Changes]:
    return {"result": verdict.result, "artifacts": verdict.artifacts, "steps": verdict.steps}


def _text(verdict: Differs) -> str:
    lines = [f"status: {verdict.status[0]} -> {verdict.status[1]}"]
    for name, part in {**_parts(verdict), "provenance": verdict.provenance}.items():
        if part:
            lines += [name, *map(change_line, part.changes[:CHANGES_MAX])]
    return _clean("\n".join(lines))


def _quoted(value: object) -> str:
    return quoteattr(_clean(str(value)))


def _clean(text: str) -> str:
    # XML has no form at all for most control characters, nor for what is no character.
    safe = printable(text)
    return "".join(char if char not in "\ufffe\uffff" else "?" for char in safe)
