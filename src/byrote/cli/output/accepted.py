# SPDX-License-Identifier: MIT
"""Prints the id of a run that was just accepted, and its result once it has ended."""

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import click
import msgspec

from byrote.assembly.app import App
from byrote.cli.options import FOREVER
from byrote.cli.output.tables import print_json
from byrote.core.errors import ResultTimeout, RunFailed
from byrote.core.run import Run
from byrote.core.text.printable import json_printable


def print_result(
    app: App,
    run_id: str,
    wait: timedelta | None,
    *,
    as_json: bool,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Print a run's id; with `wait` also its result. Raises RunFailed or ResultTimeout.

    `more` is added to the JSON.
    """
    if not as_json:
        click.echo(run_id)
    elif wait is None:
        print_json({"id": run_id, **more})
    if wait is None:
        return
    handle = app.run(run_id)
    try:
        handle.result(None if wait == FOREVER else wait)
    except (RunFailed, ResultTimeout):
        if as_json:
            print_json({**_fields(handle.refresh()), **more})
        raise
    run = handle.refresh()
    if as_json:
        print_json({**_fields(run), **more})
    else:
        click.echo(json_printable(run.result_json or "null"))


def _fields(run: Run) -> dict[str, Any]:
    result = None if run.result_json is None else msgspec.Raw(run.result_json.encode())
    return {"id": run.id, "status": run.status, "result": result}
