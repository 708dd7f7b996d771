# SPDX-License-Identifier: MIT
"""Medians, spreads, ratios and verdicts over the repetitions, as Markdown and as JSON."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.peers.ours import ASYNC, INLINE, SYNC
from bench.peers.phases import Figures
from bench.peers.workloads import PEERS

_COLUMNS = {
    "one": "enqueue one by one/s",
    "bulk": "enqueue bulk/s",
    "drain": "drain/s",
    "worker_cpu": "worker CPU s/1k",
    "postgres_cpu": "Postgres CPU s/1k",
    "p50": "p50 ms",
    "p95": "p95 ms",
    "p99": "p99 ms",
}


@dataclass(frozen=True)
class Goal:
    """One figure of Byrote's, and the least ratio it must reach against each peer named."""

    label: str
    row: str
    figure: str
    required: dict[str, float]
    lower_is_better: bool = False


GOALS = (
    Goal("drain, async tasks", ASYNC, "drain", {"pgqueuer": 1.0, "procrastinate": 20.0}),
    Goal("drain, sync tasks", SYNC, "drain", {"pgqueuer": 0.9}),
    Goal("drain, inline", INLINE, "drain", {"pgqueuer": 1.4}),
    Goal("enqueue one by one", ASYNC, "one", {"pgqueuer": 1.1}),
    Goal("enqueue bulk", ASYNC, "bulk", {"pgqueuer": 0.9}),
    Goal("latency p50", ASYNC, "p50", {"pgqueuer": 0.8}, lower_is_better=True),
    Goal("latency p99", ASYNC, "p99", {"pgqueuer": 1.0}, lower_is_better=True),
)


@dataclass
class Results:
    """All samples of a comparison: a list per row with one entry per repetition, and failures."""

    samples: dict[str, list[Figures]] = field(default_factory=dict)
    failures: list[dict[str, str]] = field(default_factory=list)

    def add(self, row: str, repetition: int, figures: Figures) -> None:
        """Keep what one repetition measured for one row."""
        entries = self.samples.setdefault(row, [])
        while len(entries) <= repetition:
            entries.append({})
        entries[repetition].update(figures)

    def fail(self, row: str, phase: str, error: str) -> None:
        """Keep why a row has no figures for a phase."""
        self.failures.append({"row": row, "phase": phase, "error": error})

    def failed(self, row: str, phase: str) -> bool:
        """Whether this phase has failed before, so that it is not tried again."""
        return any(f["row"] == row and f["phase"] == phase for f in self.failures)

    def all(self, row: str, figure: str) -> list[float]:
        """One figure of one row, over the repetitions that have it."""
        return [sample[figure] for sample in self.samples.get(row, []) if figure in sample]

    def ratios(self, goal: Goal, peer: str) -> list[float]:
        """Byrote's figure over the peer's, within each repetition that has both."""
        pairs = zip(self.samples.get(goal.row, []), self.samples.get(peer, []), strict=False)
        name = goal.figure
        return [
            ours[name] / theirs[name] for ours, theirs in pairs if name in ours and name in theirs
        ]


def verdict(results: Results, goal: Goal) -> str:
    """`met`, `missed`, or `not measured` when a peer the goal names has no ratio."""
    met = []
    for peer, least in goal.required.items():
        ratios = results.ratios(goal, peer)
        if not ratios:
            return "not measured"
        ratio = statistics.median(ratios)
        met.append(ratio <= least if goal.lower_is_better else ratio >= least)
    return "met" if all(met) else "missed"


def as_data(results: Results, about: dict[str, Any]) -> dict[str, Any]:
    """The whole comparison as one JSON object."""
    figures = {
        row: {name: _summary(values) for name in _COLUMNS if (values := results.all(row, name))}
        for row in results.samples
    }
    goals = [
        {
            "figure": goal.label,
            "ratios": {
                peer.name: _summary(values)
                for peer in PEERS
                if (values := results.ratios(goal, peer.name))
            },
            "required": goal.required,
            "lower_is_better": goal.lower_is_better,
            "verdict": verdict(results, goal),
        }
        for goal in GOALS
    ]
    return {**about, "figures": figures, "goals": goals, "failures": results.failures}


def as_markdown(results: Results, about: dict[str, Any]) -> str:
    """The two tables, what they were measured on, and what failed."""
    facts = ", ".join(f"{name} {value}" for name, value in about["server"].items())
    basis = (
        f"{about['repetitions']} repetition(s), {about['cores']} cores, Python {about['python']}"
    )
    parts = [
        f"{basis}; PostgreSQL: {facts}. Median ± half the range.",
        _table(["", *_COLUMNS.values()], [_row(results, row) for row in results.samples]),
    ]
    if any(results.all(goal.row, goal.figure) for goal in GOALS):
        head = ["Byrote", *(f"against {peer.name}" for peer in PEERS), "required", "verdict"]
        parts.append(_table(head, [_goal_row(results, goal) for goal in GOALS]))
    parts += [f"FAILED {f['row']}, {f['phase']}: {f['error']}" for f in results.failures]
    return "\n\n".join(parts)


def _row(results: Results, row: str) -> list[str]:
    version = {peer.name: f" {peer.version}" for peer in PEERS}.get(row, "")
    return [row + version, *(_cell(results.all(row, name)) for name in _COLUMNS)]


def _goal_row(results: Results, goal: Goal) -> list[str]:
    sign = "≤" if goal.lower_is_better else "≥"
    required = ", ".join(f"{sign} {least:g} {peer}" for peer, least in goal.required.items())
    ratios = [_cell(results.ratios(goal, peer.name)) for peer in PEERS]
    return [goal.label, *ratios, required, verdict(results, goal)]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _summary(values: list[float]) -> dict[str, Any]:
    return {"median": statistics.median(values), "spread": _spread(values), "all": values}


def _spread(values: list[float]) -> float:
    """Half the range, as a share of the median."""
    return (max(values) - min(values)) / 2 / statistics.median(values) if any(values) else 0.0


def _cell(values: list[float]) -> str:
    if not values:
        return "-"
    median = statistics.median(values)
    text = (
        f"{median:,.0f}" if median >= 100 else f"{median:.2f}" if median >= 1 else f"{median:.3f}"
    )
    return text if len(values) == 1 else f"{text} ±{_spread(values):.0%}"
