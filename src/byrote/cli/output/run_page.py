# SPDX-License-Identifier: MIT
"""A run as it is shown: a row of a table, a page for people, an object for programs."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click
import msgspec

from byrote.cli.output.tables import moment, print_fields, print_table
from byrote.core.ports.replies import StepRow
from byrote.core.progress import Progress, spoken
from byrote.core.run import Run
from byrote.core.text.printable import one_line, printable
from byrote.store.rows import ReplayRow

PAYLOADS = (
    "spec_json", "result_json", "faults", "retry_json", "provenance", "usage", "progress",
)  # fmt: skip
ERROR_WIDTH = 60


def row_of(run: Run) -> tuple[object, ...]:
    """One line of a list; no payloads."""
    attempts = f"{run.charged}/{run.max_attempts}"
    task = run.task if run.version == 1 else f"{run.task}@{run.version}"
    ends = run.enqueued_at, run.finished_at
    return run.id, run.status, task, run.queue, attempts, *ends, short_error(run)


def short_error(run: Run) -> str:
    """The start of the last attempt's error, for a list."""
    return error_of(run).replace("\n", " ")[:ERROR_WIDTH]


def error_of(run: Run) -> str:
    """The last attempt's error in one line, while it matters."""
    if not run.faults or run.status == "SUCCESSFUL":
        return ""
    last = run.faults[-1]
    return f"{last.get('type')}: {last.get('message', '')}".removesuffix(": ")


def fields_of(run: Run, *, whole: bool = False) -> dict[str, Any]:
    """A run as a JSON object; `whole` with its spec and result, verbatim, and every error."""
    fields = {k: v for k, v in msgspec.structs.asdict(run).items() if k not in PAYLOADS}
    limit = fields.pop("timeout")
    fields["timeout_s"] = None if limit is None else limit.total_seconds()
    if not whole:
        return {**fields, "error": error_of(run) or None}
    return {
        **fields,
        "usage": run.usage,
        "progress": None if run.progress is None else msgspec.structs.asdict(run.progress),
        "retry": _raw(run.retry_json),
        "spec": _raw(run.spec_json),
        "result": _raw(run.result_json),
        "errors": run.faults,
    }


def show_run(run: Run, replays: Sequence[ReplayRow] = ()) -> None:
    """Print everything about a run, and what repeats it."""
    shown = {k: v for k, v in msgspec.structs.asdict(run).items() if k not in PAYLOADS}
    shown["attempts"] = f"{run.attempts} ({run.charged} of {run.max_attempts} charged)"
    if run.as_of == run.enqueued_at:
        del shown["as_of"]
    if not run.losses:
        del shown["losses"], shown["charged"], shown["max_attempts"]
    if not run.shadow:
        del shown["shadow"]
    shown["progress"] = _progress(run.progress)
    shown["replays"] = [f"{row.id} ({'shadow, ' * row.shadow}{row.status})" for row in replays]
    print_fields(shown)
    if run.hidden:
        click.echo("\nThis login may not read arguments, results and error messages.")
        return
    for name, value in (("args", run.args), ("kwargs", run.kwargs)):
        if value:
            _print_json_part(name, value)
    if run.result_json is not None:
        _print_json_part("result", run.result)
    for fault in run.faults:
        _print_fault(fault)
    for usage in run.usage:
        _print_usage(usage)


def _progress(progress: Progress | None) -> str:
    if progress is None:
        return ""
    text = f"{spoken(progress)} (reported {moment(progress.at)})"
    if progress.eta is not None:
        text += f", done about {moment(progress.eta)}, an estimate"
    return text


def step_fields(step: StepRow) -> dict[str, Any]:
    """An entry of the ledger as a JSON object, with its result verbatim."""
    fields = msgspec.structs.asdict(step)
    del fields["run_id"], fields["result_json"]
    return {**fields, "result": _raw(step.result_json)}


def show_steps(steps: Sequence[StepRow]) -> None:
    """Print the ledger of a run, if it has one."""
    if not steps:
        return
    click.echo("\nsteps")
    heads = ("step", "place", "kind", "name", "attempt", "at", "result hash")
    print_table(heads, map(_step_row, steps), empty="")


def _step_row(step: StepRow) -> tuple[object, ...]:
    if step.open:
        result = "waits" if step.wake_at is None else f"waits until {moment(step.wake_at)}"
    elif step.kind == "event" and step.result_hash is None:
        result = "timed out"
    else:
        result = step.result_hash or ""
    place = step.place or str(step.sequence)
    return step.sequence, place, step.kind, step.name, step.attempt, step.at, result


def _raw(text: str | None) -> msgspec.Raw | None:
    return None if text is None else msgspec.Raw(text.encode())


def _print_json_part(name: str, value: Any) -> None:
    click.echo(f"\n{name}")
    click.echo(_indented(json.dumps(value, indent=2, ensure_ascii=False)))


def _print_fault(fault: Mapping[str, Any]) -> None:
    where = f" on {fault['worker']}" if fault.get("worker") else ""
    click.echo()
    click.echo(one_line(f"attempt {fault.get('attempt', '?')}{where}: {fault.get('kind')}"))
    message = f"{fault.get('type')}: {fault.get('message', '')}".removesuffix(": ")
    for name in ("signal", "exit_code"):
        if fault.get(name) is not None:
            message += f" ({name.replace('_', ' ')} {fault[name]})"
    click.echo(_indented(message))
    if fault.get("traceback"):
        click.echo(_indented(str(fault["traceback"]).rstrip()))


def _print_usage(usage: Mapping[str, Any]) -> None:
    wall, cpu = _share(usage.get("wall_us"), 1e6), _share(usage.get("cpu_us"), 1e6)
    size = _share(usage.get("rss_max"), 2**20)
    click.echo()
    click.echo(one_line(f"attempt {usage.get('attempt', '?')} used"))
    click.echo(f"  {wall:.6f} s, CPU {cpu:.6f} s, peak RSS {size:.0f} MiB")


def _share(measured: object, unit: float) -> float:
    """Convert a measurement. It comes from a worker, so it may not fit a float."""
    number = measured if isinstance(measured, int) else 0
    return min(max(number, -(2**63)), 2**63) / unit


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in printable(text).split("\n"))
