# SPDX-License-Identifier: MIT
"""Thousands of simulated histories, each from its seed; `python -m tests.sim` does a million."""

from collections import Counter

import pytest

from tests.sim.world import Odds, World

SEEDS = 3_000
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_no_history_breaks_a_promise(part: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(part, SEEDS, PARTS):
        world = World(seed)
        assert world.run() == [], f"seed {seed}"
        seen["crashes"] += world.crashes
        seen["freezes"] += world.freezes
        seen["losses"] += world.losses
        seen["refused"] += world.refused
        seen["undone"] += world.undone
        seen["runs"] += len(world.model.rows)

    # Faults that did not happen would make every history a good one.
    assert min(seen[name] for name in ("crashes", "freezes", "losses", "refused", "undone")) > 100
    assert seen["runs"] > SEEDS / PARTS * 2


def test_one_seed_is_one_history() -> None:
    def story(seed: int) -> object:
        world = World(seed)
        world.run()
        return world.time, [(row.id, row.told) for row in world.model.rows.values()]

    assert story(11) == story(11)
    assert story(11) != story(12)


def test_without_the_fence_histories_break_promises() -> None:
    found = Counter(finding.check for seed in range(60) for finding in unfenced(seed))

    assert found["fence"] > 10


def unfenced(seed: int) -> list[object]:
    return list(World(seed, fenced=False, odds=Odds(freeze=8.0)).run())


def test_where_rows_are_taken_for_a_commit_histories_break_promises() -> None:
    worlds = (World(seed, hasty=True, odds=Odds(undo=8.0)) for seed in range(60))
    found = Counter(finding.check for world in worlds for finding in world.run())

    assert found["kept"] > 5
    assert found["unwritten"] > 10


def test_where_sessions_are_not_ended_a_run_is_accepted_twice() -> None:
    """An enqueue arrives after its second copy was accepted, failed, and moved."""
    odds = Odds(late=20.0)
    careless = [World(seed, careless=True, odds=odds).run() for seed in range(400)]
    careful = [World(seed, odds=odds).run() for seed in range(400)]

    assert Counter(finding.check for found in careless for finding in found)["ends"] > 0
    assert not any(careful)
