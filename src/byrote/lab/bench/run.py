# SPDX-License-Identifier: MIT
"""Measures the figures that were asked for, one after the other, on one server."""

from collections.abc import Sequence
from typing import Any

import msgspec

from byrote.lab.bench.database import target
from byrote.lab.bench.figures import FIGURES, FULL, QUICK, Bench, Figure, Sizes
from byrote.lab.bench.http import HTTP_FIGURES
from byrote.lab.bench.report import document, filesystem
from byrote.lab.bench.stage import log_step, own_folder


def measure(
    only: Sequence[str], *, url: str | None, runs: int | None, quick: bool
) -> dict[str, Any]:
    """The whole result of `byrote bench`; nothing is left behind, even after an error."""
    sizes = sizes_of(runs=runs, quick=quick)
    figures: dict[str, Figure] = {}
    with own_folder() as folder:
        if url is None and filesystem(folder) == "tmpfs":
            log_step(
                "The temporary directory is in memory, so fsync is free: set TMPDIR to a disk."
            )
        with target(url, folder) as server:
            bench = Bench(server, folder, sizes)
            for asked in only:
                name, figure = {**FIGURES, **HTTP_FIGURES}[asked]
                figures[name] = figure(bench)
            return document(figures, server=server, sizes=sizes, folder=folder)


def sizes_of(*, runs: int | None, quick: bool) -> Sizes:
    """How many runs each figure takes."""
    sizes = QUICK if quick else FULL
    if runs is None:
        return sizes
    return msgspec.structs.replace(sizes, one=runs, bulk=runs, drain=runs, growth=runs)
