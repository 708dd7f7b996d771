# SPDX-License-Identifier: MIT
"""The page of the release form: what was reached and what was not, by what commands wrote."""

import json
from pathlib import Path
from typing import Any

from bench.release import page

HELD = {
    "violations": 0,
    "seed": 1,
    "seconds": 3_600.0,
    "faults": [{"kind": f"k{n}", "planned": 18, "happened": 18} for n in range(20)]
    + [{"kind": "failover_sync", "planned": 52, "happened": 51}],
    "judged": {
        "violations": [], "runs": 204_000, "by_status": {"SUCCESSFUL": 204_000},
        "executions": 210_000, "again": 900, "lost_in_tail": 3,
    },
    "verified": {"events": 900_000},
    "recovery": [
        {"what": "killed worker: its runs claimed again", "times": 9, "p50_s": 2.5, "max_s": 3.9},
        {"what": "killed hand: its end told", "times": 9, "p50_s": 0.1, "max_s": 0.4},
        {"what": "server takes connections: first report accepted", "times": 90, "p50_s": 1.0,
         "max_s": 4.2},
    ],
    "zombies_forced": 4_000, "zombies_accepted": 0, "late_words": 70, "unknown": 12,
}  # fmt: skip


def rows(folder: Path, **changed: Any) -> list[str]:
    (folder / "torture.json").write_text(json.dumps({**HELD, **changed}))
    return [line for line in page(folder) if line.startswith("| ")]


def test_what_was_reached_is_met(tmp_path: Path) -> None:
    calm = {**HELD, "judged": {**HELD["judged"], "runs": 500_000, "again": 0}}  # type: ignore[dict-item]
    (tmp_path / "calm.json").write_text(json.dumps(calm))
    said = "1000 histories, x: no promise broken\n1000000 histories, x: no promise broken\n"
    (tmp_path / "sim.txt").write_text(said)
    (tmp_path / "model.xml").write_text(
        '<testsuites><testsuite><testcase><properties><property name="steps" value="200100"/>'
        "</properties></testcase></testsuite></testsuites>"
    )
    lines = rows(tmp_path)

    assert "| faults that happened | ≥ 400 | 411 | met |" in lines
    assert not [line for line in lines if "missed" in line or "not run" in line]


def test_violated_guarantees_are_marked_as_missed(tmp_path: Path) -> None:
    lost = {"kind": "lost", "run": "r", "message": "s"}
    judged = {**HELD["judged"], "violations": [lost]}  # type: ignore[dict-item]
    (tmp_path / "sim.txt").write_text("1000 histories, x: no promise broken\nseed 7: [Finding]\n")
    lines = rows(tmp_path, violations=1, judged=judged, zombies_forced=499)
    missed = {line.split("|")[1].strip() for line in lines if "missed" in line}

    assert missed == {
        "guarantees violated",
        "zombie finishes forced",
        "acknowledged runs lost",
        "simulated histories",
    }


def test_what_was_not_run_is_not_met(tmp_path: Path) -> None:
    lines = [line for line in page(tmp_path) if line.startswith("| ")]

    assert len(lines) >= 12
    assert not [line for line in lines if line.endswith(" met |")]
