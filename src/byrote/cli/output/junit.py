# SPDX-License-Identifier: MIT
"""Verdicts of replays as JUnit XML, which CI systems display."""

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET

from byrote.cli.commands.runs.diff import change_line, summary
from byrote.core.json.diff import Changes
from byrote.core.replay.verdict import Differs, NotReplayable, Replayed
from byrote.core.text.printable import printable

CHANGES_MAX = 20
"""Maximum number of differences listed for each part of a run."""


def suite_of(
    name: str, cases: Sequence[ET.Element], counts: Mapping[str, int], seconds: float
) -> str:
    """Return the document: one case per run; `failure` if it differs, `error` if not replayable."""
    suite = ET.Element(
        "testsuite",
        name=_clean(f"byrote replay {name}"),
        tests=str(len(cases)),
        failures=str(counts["differs"]),
        errors=str(counts["not replayable"]),
        time=f"{seconds:.3f}",
    )
    suite.extend(cases)
    ET.indent(suite)
    text: bytes = ET.tostring(suite, "UTF-8", xml_declaration=True)
    return f"{text.decode()}\n"


def case_of(verdict: Replayed) -> ET.Element:
    """Return one run as a test case."""
    case = ET.Element(
        "testcase", classname=_clean(verdict.task or ""), name=_clean(verdict.original)
    )
    if isinstance(verdict, NotReplayable):
        ET.SubElement(case, "error", type=_clean(verdict.why), message=_clean(verdict.reason))
        return case
    if isinstance(verdict, Differs):
        parts = [f"{name} {summary(part)}" for name, part in _parts(verdict).items() if part]
        message = _clean(f"{', '.join(parts)}; replayed as {verdict.replay}")
        failure = ET.SubElement(case, "failure", type="differs", message=message)
        failure.text = _text(verdict)
    if verdict.withheld:
        output = ET.SubElement(case, "system-out")
        output.text = _clean(f"not sent: {', '.join(map(str, verdict.withheld))}")
    return case


def _parts(verdict: Differs) -> dict[str, Changes]:
    return {"result": verdict.result, "artifacts": verdict.artifacts, "steps": verdict.steps}


def _text(verdict: Differs) -> str:
    lines = [f"status: {verdict.status[0]} -> {verdict.status[1]}"]
    for name, part in {**_parts(verdict), "provenance": verdict.provenance}.items():
        if part:
            lines += [name, *map(change_line, part.changes[:CHANGES_MAX])]
    return _clean("\n".join(lines))


def _clean(text: str) -> str:
    # XML cannot represent most control characters, nor U+FFFE and U+FFFF.
    safe = printable(text)
    return "".join(char if char not in "\ufffe\uffff" else "?" for char in safe)
