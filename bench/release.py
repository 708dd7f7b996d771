# SPDX-License-Identifier: MIT
"""What the long commands found, as a page: `python -m bench.release FOLDER`.

The folder holds what `make release-proof` has written there; a file that is missing is a row that
says so. Nothing is rounded in our favour: a figure is met or it is missed.

    torture.json   byrote torture --minutes 60 --runs 200000 --faults 400 --seed 1 --json
    calm.json      byrote torture --calm --runs 500000 --minutes 20 --seed 2 --json
    model.xml      pytest tests/sim/test_model.py --junitxml, BYROTE_TEST_MODEL_EXAMPLES=4000
    sim.txt        python -m tests.sim
"""

import json
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from byrote.lab.torture.stage import LEASE_S

NOT_RUN = "not run"


class Row(NamedTuple):
    """A figure, what it must be, and what it is."""

    what: str
    required: str
    reached: str
    met: bool | None

    @property
    def line(self) -> str:
        verdict = {True: "met", False: "**missed**", None: "-"}[self.met]
        return f"| {self.what} | {self.required} | {self.reached} | {verdict} |"


def read(path: Path) -> dict[str, Any] | None:
    text = path.read_text() if path.exists() else ""
    found: dict[str, Any] | None = json.loads(text) if text.strip() else None
    return found


def at_least(what: str, required: int, reached: int | None) -> Row:
    if reached is None:
        return Row(what, f"≥ {required:,}", NOT_RUN, None)
    return Row(what, f"≥ {required:,}", f"{reached:,}", reached >= required)


def none_of(what: str, reached: int | None) -> Row:
    return Row(what, "0", NOT_RUN if reached is None else f"{reached:,}",
               None if reached is None else reached == 0)  # fmt: skip


def within(what: str, required_s: float, told: dict[str, Any] | None) -> Row:
    required = f"≤ {required_s:g} s"
    if told is None or not told["times"]:
        return Row(what, required, NOT_RUN if told is None else "never seen", None)
    said = f"p50 {told['p50_s']:.2f} s, max {told['max_s']:.2f} s, {told['times']} times"
    return Row(what, required, said, told["max_s"] <= required_s)


def torture_rows(told: dict[str, Any] | None) -> Iterator[Row]:
    judged = told["judged"] if told else {}
    faults = told["faults"] if told else []
    happened = {fault["kind"]: fault["happened"] for fault in faults}
    recovery = {row["what"].partition(":")[0]: row for row in told["recovery"]} if told else {}
    lost = [v for v in judged.get("violations", ()) if v["kind"] == "lost"]

    def figure(value: int) -> int | None:
        return value if told else None

    yield at_least("runs under faults", 200_000, figure(judged.get("runs", 0)))
    yield at_least("faults that happened", 400, figure(sum(happened.values())))
    yield at_least("kinds of faults", 20, figure(sum(n > 0 for n in happened.values())))
    yield none_of("guarantees violated", figure(told["violations"] if told else 0))
    yield at_least("zombie finishes forced", 500, figure(told["zombies_forced"] if told else 0))
    yield none_of("zombie finishes accepted", figure(told["zombies_accepted"] if told else 0))
    yield at_least("synchronous failovers", 50, figure(happened.get("failover_sync", 0)))
    yield none_of("acknowledged runs lost", figure(len(lost)))
    yield within(
        "killed worker: its runs claimed again", LEASE_S + 2, recovery.get("killed worker")
    )
    yield within("killed hand: its end reported", 1, recovery.get("killed hand"))
    accepts = recovery.get("server takes connections")
    yield within("server takes connections: first report accepted", 5, accepts)


def other_rows(folder: Path) -> Iterator[Row]:
    calm = read(folder / "calm.json")
    yield at_least("runs without faults", 500_000, calm and calm["judged"]["runs"])
    again = calm and calm["judged"]["again"] + calm["violations"]
    yield none_of("runs without faults executed twice, or guarantees violated", again)
    yield at_least(
        "steps of the store compared with its model", 200_000, steps(folder / "model.xml")
    )
    yield at_least("simulated histories", 1_000_000, histories(folder / "sim.txt"))


def steps(path: Path) -> int | None:
    """How many steps the model test did; none of them count if it failed."""
    if not path.exists():
        return None
    root = ET.parse(path).getroot()  # noqa: S314 -- written by our own pytest a moment ago.
    failed = root.find(".//failure") is not None or root.find(".//error") is not None
    told = [p.get("value") for p in root.iter("property") if p.get("name") == "steps"]
    return 0 if failed else sum(int(value or 0) for value in told)


def histories(path: Path) -> int | None:
    """How many histories broke nothing, by the simulation's last line."""
    if not path.exists():
        return None
    lines = path.read_text().splitlines()
    found = re.match(r"(\d+) histories, .*no promise broken$", lines[-1] if lines else "")
    return int(found[1]) if found else 0


def page(folder: Path) -> Iterator[str]:
    told = read(folder / "torture.json")
    yield "# Results of the release tests\n"
    yield "This page shows the results of the long tests that are run for a release;"
    yield "`make release-proof` repeats them."
    yield "[Guarantees](../explanation/guarantees.md) describes each test and what it checks.\n"
    yield "| Figure | required | reached | verdict |"
    yield "|---|---|---|---|"
    yield from (row.line for row in (*torture_rows(told), *other_rows(folder)))
    if told is None:
        return
    judged = told["judged"]
    ends = ", ".join(f"{n:,} {status}" for status, n in sorted(judged["by_status"].items()))
    yield f"\nSeed {told['seed']}, {told['seconds'] / 60:.0f} minutes: {ends}."
    yield f"{told['verified']['events']:,} events were verified."
    yield f"There were {judged['executions']:,} executions."
    yield f"{judged['again']:,} runs were executed more often than charged, which faults may cause."
    yield f"{told['late_words']:,} late writes of workers were refused, besides those of zombies."
    yield f"{told['unknown']:,} enqueues were not answered."
    yield f"{judged['lost_in_tail']:,} acknowledged runs were lost in asynchronous failovers,"
    yield "for which Byrote makes no such guarantee.\n"
    yield "| fault | planned | happened |"
    yield "|---|---|---|"
    yield from (f"| `{f['kind']}` | {f['planned']} | {f['happened']} |" for f in told["faults"])


def main() -> None:
    sys.stdout.write("\n".join(page(Path(sys.argv[1]))) + "\n")


if __name__ == "__main__":
    main()
