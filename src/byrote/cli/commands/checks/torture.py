# SPDX-License-Identifier: MIT
"""`byrote torture`: injects faults of every kind by a seed, then checks every guarantee."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from byrote.cli.errors import CHECK_FAILED
from byrote.cli.options import json_option
from byrote.cli.output.tables import print_json, print_table
from byrote.core.text.printable import one_line

if TYPE_CHECKING:
    from byrote.lab.torture.plan import PlannedFault
    from byrote.lab.torture.run import TortureReport, Wish

RUNS_PER_S = 55


@click.command(epilog="Example: byrote torture --minutes 5 --seed 1")
@json_option
@click.option("--minutes", type=click.FloatRange(0.1, 1_440), default=1.0, show_default=True)
@click.option("--runs", type=click.IntRange(min=1), help="Runs to send; about 55 a second.")
@click.option("--faults", type=click.IntRange(min=0), help="Faults; one every nine seconds.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--kinds", metavar="A,B", help="Only these kinds of faults; all if absent.")
@click.option(
    "--url", help="Your own PostgreSQL: uses a new database, without kinds that harm others."
)
@click.option("--calm", is_flag=True, help="No faults at all: then nothing may run twice.")
@click.option("--plan", "only_plan", is_flag=True, help="Print the schedule and do nothing.")
@click.option("--keep", is_flag=True, help="Keep diaries and logs, and print where they are.")
def torture(*, as_json: bool, only_plan: bool, **wanted: Any) -> None:
    """Inject faults by a seed and check that every guarantee held.

    Starts a separate PostgreSQL, workers and producers, and injects kills, freezes, restarts,
    failovers, lost replies and more. Every process writes a diary outside the database; at the end
    the diaries are compared with the database. The same seed makes the same schedule. Nothing is
    left running.

    Exits with 3 if any guarantee was broken. Progress goes to standard error.
    """
    from byrote.lab.torture import run  # noqa: PLC0415 -- `--help` stays fast.

    wish = _wish(**wanted)
    plan = run.plan_of(wish)
    if only_plan:
        _show_plan(plan, wish, as_json=as_json)
        return
    if not as_json:
        certain = sum(not planned.spare for planned in plan)
        click.echo(f"seed {wish.seed}: {certain} faults in {wish.seconds:g} s", err=True)
        for planned in plan:
            spare = " (spare)" if planned.spare else ""
            click.echo(f"  {planned.at_s:7.1f} s  {planned.kind}{spare}", err=True)
    ended = run.torture(wish, show=lambda line: click.echo(line, err=True))
    if as_json:
        print_json(_fields(ended))
    else:
        _show(ended)
    if ended.violations:
        click.get_current_context().exit(CHECK_FAILED)


def _wish(
    *,
    minutes: float,
    runs: int | None,
    faults: int | None,
    seed: int,
    kinds: str | None,
    url: str | None,
    keep: bool,
    calm: bool,
) -> Wish:
    from byrote.lab.torture.plan import GAP_S, KINDS  # noqa: PLC0415 -- `--help` stays fast.
    from byrote.lab.torture.run import Wish  # noqa: PLC0415 -- the same.

    chosen = tuple(KINDS) if kinds is None else tuple(kind.strip() for kind in kinds.split(","))
    for kind in chosen:
        if kind not in KINDS:
            raise click.BadParameter(f"no fault {kind!r}; there are {', '.join(KINDS)}")
    seconds = minutes * 60
    return Wish(
        seconds=seconds,
        runs=runs or round(seconds * RUNS_PER_S),
        faults=round(seconds / GAP_S) if faults is None else faults,
        seed=seed,
        kinds=chosen,
        url=url,
        keep=keep,
        calm=calm,
    )


def _show_plan(plan: list[PlannedFault], wish: Wish, *, as_json: bool) -> None:
    certain = [planned for planned in plan if not planned.spare]
    if as_json:
        for planned in certain:
            print_json({"at_s": planned.at_s, "kind": planned.kind, "number": planned.number})
        return
    rows = ((f"{planned.at_s:.1f} s", planned.kind) for planned in certain)
    print_table(("at", "fault"), rows, empty="No faults.")
    takes_s = sum(planned.takes_s for planned in certain)
    kinds = Counter(planned.kind for planned in certain)
    click.echo(
        f"\nseed {wish.seed}: {len(certain)} faults of {len(kinds)} kinds, "
        f"{kinds['failover_sync']} synchronous failovers among them. They take about "
        f"{takes_s:,.0f} of {wish.seconds:,.0f} s; {wish.runs:,} runs meanwhile are "
        f"{wish.runs / wish.seconds:.0f} a second. Faults that fail to happen are "
        f"replaced at the end by {len(plan) - len(certain)} spares."
    )


def _fields(ended: TortureReport) -> dict[str, Any]:
    import msgspec  # noqa: PLC0415 -- `--help` stays fast.

    fields: dict[str, Any] = msgspec.to_builtins(ended)
    return {"violations": ended.violations, **fields}


def _show(ended: TortureReport) -> None:
    struck = [(fault.kind, fault.planned, fault.happened) for fault in ended.faults]
    print_table(("fault", "planned", "happened"), struck, empty="No faults.")
    click.echo()
    print_table(("what", "figure"), _figures(ended), empty="")
    click.echo()
    rows = [(r.what, r.times, _seconds(r.p50_s), _seconds(r.max_s)) for r in ended.recovery]
    print_table(("recovery", "times", "p50", "max"), rows, empty="")
    for violation in ended.judged.violations[:50]:
        click.echo(f"VIOLATION {violation.kind}: {violation.run}: {one_line(violation.message)}")
    for finding in ended.verified.findings[:50]:
        where = finding.run or "database"
        click.echo(f"VIOLATION {finding.check}: {where}: {one_line(finding.message)}")
    verdict = "no guarantee was broken" if not ended.violations else "GUARANTEES WERE BROKEN"
    click.echo(f"\nseed {ended.seed}, {ended.seconds:.0f} s: {verdict}.")
    if ended.folder:
        click.echo(f"Diaries and logs are kept in {ended.folder}.")


def _figures(ended: TortureReport) -> list[tuple[str, object]]:
    judged = ended.judged
    happened = sum(fault.happened for fault in ended.faults)
    kinds = sum(fault.happened > 0 for fault in ended.faults)
    ends = ", ".join(f"{count:,} {status}" for status, count in sorted(judged.by_status.items()))
    return [
        ("runs", f"{judged.runs:,}: {ends}"),
        ("ticks of a schedule, one run each", judged.ticks),
        ("runs that no worker knows, ended in time", judged.unserved),
        ("events verified", f"{ended.verified.events:,}"),
        ("faults that happened", f"{happened} of {kinds} kinds"),
        ("violations", ended.violations),
        ("zombie finishes forced", ended.zombies_forced),
        ("zombie finishes accepted", ended.zombies_accepted),
        ("late reports of workers refused", ended.late_words),
        ("enqueues without a reply", ended.unknown),
        ("executions", f"{judged.executions:,}"),
        ("runs executed more often than charged", judged.again),
        ("lost in the tail of asynchronous failovers", judged.lost_in_tail),
    ]


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} s"
