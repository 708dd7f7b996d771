# SPDX-License-Identifier: MIT
import inspect
from collections import Counter

from byrote.lab.torture.faults import networks, processes, servers, services
from byrote.lab.torture.plan import GAP_S, KINDS, OWN_SERVER, SHORT, schedule
from byrote.lab.torture.run import Wish, fault_of, plan_of
from tests.cli.console import byrote


def test_one_seed_is_one_schedule() -> None:
    first = schedule(1, seconds=300, faults=40, kinds=list(KINDS))

    assert first == schedule(1, seconds=300, faults=40, kinds=list(KINDS))
    assert first != schedule(2, seconds=300, faults=40, kinds=list(KINDS))
    assert first[3].dice.random() == first[3].dice.random()


def test_every_kind_comes_up_before_any_comes_up_twice() -> None:
    planned = schedule(7, seconds=3_600, faults=2 * len(KINDS), kinds=list(KINDS))

    assert len(KINDS) >= 20
    assert Counter(fault.kind for fault in planned[: len(KINDS)]) == Counter(list(KINDS))
    assert [fault.at_s for fault in planned] == sorted(fault.at_s for fault in planned)
    assert planned[-1].at_s < 3_600


def test_the_release_form_can_be_done_in_its_hour() -> None:
    planned = schedule(1, seconds=3_600, faults=400, kinds=list(KINDS))
    certain = [fault for fault in planned if not fault.spare]
    by_kind = Counter(fault.kind for fault in certain)

    assert len(certain) == 400
    assert by_kind["failover_sync"] >= 50
    assert min(by_kind[kind] for kind in KINDS) >= 9
    assert sum(fault.takes_s for fault in certain) < 0.75 * 3_600
    assert len(planned) - len(certain) >= 20


def test_every_kind_can_be_done_and_everything_that_can_be_done_is_a_kind() -> None:
    faults = {
        name
        for module in (processes, servers, networks, services)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    }

    assert faults == set(KINDS)
    assert all(callable(fault_of(kind)) for kind in KINDS)
    assert set(SHORT) | OWN_SERVER <= set(KINDS)
    assert len(SHORT) == 10


def test_a_server_of_yours_is_not_killed() -> None:
    wish = Wish(seconds=600, runs=1, faults=99, seed=1, kinds=tuple(KINDS), url="postgresql://")

    assert not {fault.kind for fault in plan_of(wish)} & OWN_SERVER


def test_the_plan_is_printed_and_an_unknown_kind_refused() -> None:
    planned = byrote("torture", "--plan", "--minutes", "5", "--seed", "3", "--json").objects
    refused = byrote("torture", "--kinds", "kill_wroker")

    assert len(planned) == round(300 / GAP_S)
    assert planned == byrote("torture", "--plan", "--minutes", "5", "--seed", "3", "--json").objects
    assert refused.code == 2
    assert "kill_worker" in refused.err
