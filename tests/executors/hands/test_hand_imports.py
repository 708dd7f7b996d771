# SPDX-License-Identifier: MIT
"""What a hand imports: each module costs memory in every hand, and time at every start."""

import json

from tests.worker.bench import Bench, make_hands

CONNECTS = {"psycopg", "psycopg_binary", "byrote.store.runners.sync", "byrote.embedded.server"}
"""9 MB and 0.2 s in a hand whose tasks do not enqueue."""
METADATA = {"importlib.metadata", "email", "zipfile"}
SUPERVISOR = {"byrote.worker.worker", "byrote.executors.hands.pool", "byrote.cli.root", "click"}


def test_a_hand_has_no_driver_and_nothing_of_the_supervisor() -> None:
    bench = Bench(make_hands("tests.tasks.modules:app", hands=1))
    loaded = set(json.loads(bench.run("loaded").text))
    bench.close()

    assert "byrote.executors.hands.child_loop" in loaded
    assert not loaded & (CONNECTS | METADATA | SUPERVISOR)
