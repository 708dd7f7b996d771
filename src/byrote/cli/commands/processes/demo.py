# SPDX-License-Identifier: MIT
"""`byrote demo`: everything a run can go through, in seconds, on a separate server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from byrote.cli.errors import FAILED
from byrote.cli.lazy import import_for
from byrote.cli.options import json_option
from byrote.cli.output.tables import paint, print_json, print_table

if TYPE_CHECKING:
    from byrote.demo.run import DemoResult
    from byrote.demo.story import Chapter
    from byrote.demo.verified import Verified

HEADS = ("kind", "sent", "what it does", "expected", "seen", "")


@click.command(epilog="Example: byrote demo --keep")
@json_option
@click.option("--url", help="Use this database instead; it is migrated, and the runs stay in it.")
@click.option("--keep", is_flag=True, help="Keep the demo's data folder, and print where it is.")
def demo(*, as_json: bool, url: str | None, keep: bool) -> None:
    """See Byrote work: a server, a worker and a few hundred runs, in seconds.

    Starts a separate PostgreSQL in a temporary folder and a worker with two hands, sends runs that
    succeed, fail, retry, crash, time out, wait, overtake and are cancelled, shows their state in
    the database, replays one, and verifies another: with the code that ran it, and after a change
    of that code. Nothing is left running.

    Exits with 1 if any outcome was unexpected.
    """
    import_for("demo", "psycopg")  # Before a server is started.
    from byrote.demo.run import run_demo  # noqa: PLC0415 -- `--help` stays fast.

    url = None if url == "embedded" else url
    ended = run_demo(url=url, keep=keep, silent=as_json, paint=paint)
    steps = _next_steps(ended, given=url is not None)
    if as_json:
        print_json(_fields(ended, steps))
    else:
        _show(ended, steps)
    if not ended.story.ok:
        raise click.exceptions.Exit(FAILED)


def _fields(ended: DemoResult, steps: list[tuple[str, str]]) -> dict[str, Any]:
    import msgspec  # noqa: PLC0415 -- `--help` stays fast.

    story: dict[str, Any] = msgspec.to_builtins(ended.story)
    home = None if ended.home is None else str(ended.home)
    return {**story, "kept": home, "next": [{"command": c, "why": w} for c, w in steps]}


def _show(ended: DemoResult, steps: list[tuple[str, str]]) -> None:
    story = ended.story
    click.echo()
    rows = [
        (c.kind, c.sent, c.about, c.expected, _seen(c), "ok" if c.ok else "fail")
        for c in story.chapters
    ]
    print_table(HEADS, rows, empty="")
    click.echo(
        "\nA failed attempt counts against a run's limit; one returned to the queue does not."
    )
    replay = story.replay
    same = "equals the original's" if replay.ok else "DIFFERS from the original's"
    click.echo(f"\nReplay of spec {replay.spec_hash[:12]}: the result's hash {same}")
    click.echo(f"  {replay.original}  {replay.original_result_hash}")
    click.echo(f"  {replay.replay}  {replay.replay_result_hash}")
    for verified in story.verified:
        _show_verified(verified)
    sent = sum(chapter.sent for chapter in story.chapters)
    verdict = "all as expected" if story.ok else "NOT all as expected"
    click.echo(f"\n{sent} runs and three replays in {story.seconds:.1f} s: {verdict}.")
    if ended.home is not None:
        click.echo(f"The data is kept in {ended.home.parent}.")
    click.echo("\nTry next:")
    for command, why in steps:
        click.echo(f"  {command}\n      {why}")


def _show_verified(verified: Verified) -> None:
    from byrote.cli.output.replay_verdicts import show_verdict  # noqa: PLC0415 -- `--help` stays fast.

    if verified.code:
        click.echo("\nThe code changes, and the same run is executed again:")
        for line in verified.code:
            click.echo(f"  {line}")
    else:
        click.echo(
            "\nVerified replay: executed again in a shadow run, recorded steps not repeated."
        )
    click.echo(f"$ {verified.command}")
    show_verdict(verified.verdict)


def _seen(chapter: Chapter) -> str:
    if chapter.ok:
        return f"all {chapter.sent}"
    return "; ".join(f"{count} x {words}" for words, count in chapter.seen.items())


def _next_steps(ended: DemoResult, *, given: bool) -> list[tuple[str, str]]:
    story = ended.story
    if ended.home is None and not given:
        return [
            ("byrote demo --keep", "The same, but keeps its data for you to inspect."),
            ("byrote worker MODULE:APP", "Run the tasks of your app."),
            ("byrote bench --quick", "Measure the speed of this machine."),
        ]
    example = {chapter.kind: chapter.example for chapter in story.chapters}
    before = ""
    if ended.home is not None:
        before = f"BYROTE_PG_HOME={ended.home} BYROTE_PG_DATABASE=byrote "
    after = " --url URL" if given else ""
    steps = [
        (f"runs list --status failed{after}", "The dead letters."),
        (f"runs show {example['poison']}{after}", "All three crashes of one run."),
        (f"replay {story.replay.spec_hash}{after}", "Enqueue that spec once more, by its hash."),
        (
            f"replay --task demo.invoice --verify --app byrote.demo.tasks:app{after}",
            "Verify all its invoices, as a deploy gate would.",
        ),
        (
            f"worker byrote.demo.tasks:app --queues {story.queue} --drain{after}",
            "Start a worker that executes it, then stops.",
        ),
    ]
    steps = [(f"{before}byrote {command}", why) for command, why in steps]
    if ended.home is not None:
        steps.append((f"rm -r {ended.home.parent}", "When you have seen enough."))
    return steps
