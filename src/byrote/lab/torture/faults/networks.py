# SPDX-License-Identifier: MIT
"""Faults of the network between all processes and the database, caused by the proxies."""

import time
from collections.abc import Callable

from byrote.executors.runtime.seeding import Random
from byrote.lab.torture.faults.processes import Shown
from byrote.lab.torture.faults.proxy import Proxy
from byrote.lab.torture.stage import LEASE_S, TortureSetup


def _during(
    stage: TortureSetup, dice: Random, spoil: Callable[[Proxy], None], seconds: float
) -> Shown:
    """Disturb some proxies for `seconds`, then heal them; returns how often they struck."""
    some = dice.sample(stage.proxies, dice.randint(1, len(stage.proxies)))
    for proxy in some:
        proxy.struck = 0
        spoil(proxy)
    time.sleep(seconds)
    for proxy in some:
        proxy.heal()
    struck = sum(proxy.struck for proxy in some)
    return {"proxies": len(some), "struck": struck} if struck else None


def cut(stage: TortureSetup, dice: Random) -> Shown:
    """Reset every connection, a few times."""

    def spoil(proxy: Proxy) -> None:
        for _ in range(3):
            proxy.cut()
            time.sleep(0.2)

    return _during(stage, dice, spoil, 0.1)


def sever(stage: TortureSetup, dice: Random) -> Shown:
    """Reset every connection and refuse new ones for a while."""

    def spoil(proxy: Proxy) -> None:
        proxy.mood.refuse = True
        proxy.cut()

    return _during(stage, dice, spoil, dice.uniform(1.0, 2 * LEASE_S))


def delay(stage: TortureSetup, dice: Random) -> Shown:
    """Delay every packet by half a second."""

    def spoil(proxy: Proxy) -> None:
        proxy.mood.delay_s = dice.uniform(0.1, 0.5)

    return _during(stage, dice, spoil, 4.0)


def blackhole(stage: TortureSetup, dice: Random) -> Shown:
    """Drop packets for longer than a lease, then break the connections."""

    def spoil(proxy: Proxy) -> None:
        proxy.mood.swallow = True

    shown = _during(stage, dice, spoil, 1.5 * LEASE_S)
    for proxy in stage.proxies:
        proxy.cut()
    return shown


def lost_answers(stage: TortureSetup, dice: Random) -> Shown:
    """Lose answers whose statements took effect."""

    def spoil(proxy: Proxy) -> None:
        proxy.mood.lose_answers = dice.randint(3, 15)

    return _during(stage, dice, spoil, 3.0)


def lost_requests(stage: TortureSetup, dice: Random) -> Shown:
    """Break connections before the statement arrives."""

    def spoil(proxy: Proxy) -> None:
        proxy.mood.lose_requests = dice.randint(3, 15)

    return _during(stage, dice, spoil, 3.0)


def torn_ends(stage: TortureSetup, dice: Random) -> Shown:
    """Break connections between the rows of an answer and its end."""

    def spoil(proxy: Proxy) -> None:
        proxy.mood.tear_ends = dice.randint(3, 15)

    return _during(stage, dice, spoil, 3.0)


def late_requests(stage: TortureSetup, dice: Random) -> Shown:
    """Break connections, and pass their statements to the server seconds later."""

    def spoil(proxy: Proxy) -> None:
        proxy.mood.late_requests = dice.randint(3, 15)
        proxy.mood.late_s = dice.uniform(0.2, 2 * LEASE_S)

    return _during(stage, dice, spoil, 3.0)


def torn_answers(stage: TortureSetup, dice: Random) -> Shown:
    """Break connections in the middle of an answer."""

    def spoil(proxy: Proxy) -> None:
        for _ in range(6):
            proxy.mood.tear_after = dice.randint(1, 200)
            time.sleep(0.2)

    return _during(stage, dice, spoil, 0.5)
