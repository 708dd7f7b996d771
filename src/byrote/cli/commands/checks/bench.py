# SPDX-License-Identifier: MIT
"""`byrote bench`: how fast this machine and this PostgreSQL are with Byrote."""

import click

from byrote.cli.options import json_option
from byrote.cli.output.tables import print_json, print_table

NAMES = ("one", "bulk", "drain-async", "drain-sync", "drain-inline", "latency", "growth")
HTTP = ("http-one", "http-bulk", "http-rate", "http-drain")
BESIDE = ("one", "bulk", "drain-async", *HTTP)
"""The parts of `--http`: the service, and the same without it."""
_ALL = ",".join((*NAMES, *HTTP))


def _chosen(_ctx: click.Context, _param: click.Parameter, raw: str | None) -> tuple[str, ...]:
    names = () if raw is None else tuple(name.strip() for name in raw.split(","))
    unknown = [name for name in names if name not in (*NAMES, *HTTP)]
    if unknown:
        known = ", ".join((*NAMES, *HTTP))
        raise click.BadParameter(f"no figure {unknown[0]!r}; there are {known}")
    return names


@click.command(epilog="Example: byrote bench --quick --only one,drain-async")
@json_option
@click.option("--url", help="Your own PostgreSQL, where this user may create databases.")
@click.option(
    "--only", callback=_chosen, help=f"Figures to measure, of {','.join((*NAMES, *HTTP))}."
)
@click.option("--http", is_flag=True, help="The service's figures beside the direct ones.")
@click.option("--runs", type=click.IntRange(min=1), help="Runs for each figure but latency.")
@click.option("--quick", is_flag=True, help="Small numbers: a minute or two, rougher figures.")
def bench(
    *,
    as_json: bool,
    url: str | None,
    only: tuple[str, ...],
    http: bool,
    runs: int | None,
    quick: bool,
) -> None:
    """Measure enqueueing, draining, latency and growth.

    Starts a separate PostgreSQL in the temporary directory, with fsync on. With --url it uses
    yours: for each figure it creates a database byrote_bench_<pid> and drops it, and it touches
    no other. Progress goes to standard error, the figures to standard output.

    See docs/reference/bench.md for how each figure is measured.
    """
    from byrote.lab.bench.report import HEADS, basis, rows  # noqa: PLC0415 -- `--help` stays fast.
    from byrote.lab.bench.run import measure  # noqa: PLC0415 -- the same.

    report = measure(only or (BESIDE if http else NAMES), url=url, runs=runs, quick=quick)
    if as_json:
        print_json(report)
        return
    print_table(HEADS, rows(report), empty="")
    click.echo(f"\n{basis(report)}")
