# SPDX-License-Identifier: MIT
"""A run as it is shown: a row of a table, a page for people, an object for programs."""

import json
from collections.abc import Mapping
from typing import Any

import click
import msgspec

from byrote.cli.show import print_fields, printable
from byrote.core.run import Run

PAYLOADS = ("spec_json", "result_json", "faults", "retry_json")
ERROR_WIDTH = 60


def row_of(run: Run) -> tuple[object, ...]:
    """One line of a list; no payloads."""
    attempts = f"{run.charged}/{run.max_attempts}"
    task = run.task if run.version == 1 else f"{run.task}@{run.version}"
    error = error_of(run).replace("\n", " ")[:ERROR_WIDTH]
    return run.id, run.status, task, run.queue, attempts, run.enqueued_at, run.finished_at, error


def error_of(run: Run) -> str:
    """The last attempt's error in one line, while it matters."""
    if not run.faults or run.status == "SUCCESSFUL":
        return ""
    last = run.faults[-1]
    return f"{last.get('type')}: {last.get('message', '')}".removesuffix(": ")


def fields_of(run: Run, *, whole: bool = False) -> dict[str, Any]:
    """A run as a JSON object; `whole` with its spec and result, verbatim, and every error."""
    fields = {k: v for k, v in msgspec.structs.asdict(run).items() if k not in PAYLOADS}
    if not whole:
        return {**fields, "error": error_of(run) or None}
    return {
        **fields,
        "retry": _raw(run.retry_json),
        "spec": _raw(run.spec_json),
        "result": _raw(run.result_json),
        "errors": run.faults,
    }


def show_run(run: Run) -> None:
    """Print everything about a run."""
    shown = {k: v for k, v in msgspec.structs.asdict(run).items() if k not in PAYLOADS}
    shown["attempts"] = f"{run.attempts} ({run.charged} of {run.max_attempts} charged)"
    if not run.losses:
        del shown["losses"], shown["charged"], shown["max_attempts"]
    print_fields(shown)
    for name, value in (("args", run.args), ("kwargs", run.kwargs)):
        if value:
            _print_json_part(name, value)
    if run.result_json is not None:
        _print_json_part("result", run.result)
    for fault in run.faults:
        _print_fault(fault)


def _raw(text: str | None) -> msgspec.Raw | None:
    return None if text is None else msgspec.Raw(text.encode())


def _print_json_part(name: str, value: Any) -> None:
    click.echo(f"\n{name}")
    click.echo(_indented(json.dumps(value, indent=2, ensure_ascii=False)))


def _print_fault(fault: Mapping[str, Any]) -> None:
    where = f" on {fault['worker']}" if fault.get("worker") else ""
    click.echo(f"\nattempt {fault.get('attempt', '?')}{where}: {fault.get('kind')}")
    said = f"{fault.get('type')}: {fault.get('message', '')}".removesuffix(": ")
    for name in ("signal", "exit_code"):
        if fault.get(name) is not None:
            said += f" ({name.replace('_', ' ')} {fault[name]})"
    click.echo(_indented(said))
    if fault.get("traceback"):
        click.echo(_indented(str(fault["traceback"]).rstrip()))


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in printable(text).split("\n"))
