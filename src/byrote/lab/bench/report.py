# SPDX-License-Identifier: MIT
"""The measurements and the machine, as one JSON document and as one table."""

import os
import platform
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from byrote.lab.bench.database import BenchServer
from byrote.lab.bench.figures import Figure, Sizes

HEADS = ("figure", "result", "worker CPU us/run", "PostgreSQL CPU us/run")


def document(
    figures: Mapping[str, Figure], *, server: BenchServer, sizes: Sizes, folder: Path
) -> dict[str, Any]:
    """Everything a reader needs to compare these figures with others."""
    return {
        "figures": dict(figures),
        "sizes": msgspec.to_builtins(sizes),
        "machine": {
            "cores": os.cpu_count(),
            "cpu": _processor(),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "system": platform.platform(),
            "temporary_filesystem": filesystem(folder),
        },
        "versions": {
            "byrote": version("byrote"),
            "python": platform.python_version(),
            "psycopg": version("psycopg"),
            "postgresql": server.settings.get("server_version"),
        },
        "settings": server.settings,
    }


def rows(report: Mapping[str, Any]) -> list[list[str]]:
    """The figures as a table under HEADS, one row each."""
    return [
        [_LABELS[name], _SAYS.get(name, _rate)(figure), *_cpu(figure)]
        for name, figure in report["figures"].items()
    ]


def basis(report: Mapping[str, Any]) -> str:
    """The machine, versions and settings of the measurement, in two lines."""
    machine, versions = report["machine"], report["versions"]
    settings = ", ".join(f"{name} {value}" for name, value in report["settings"].items())
    return (
        f"{machine['cores']} cores, {machine['cpu']}; Python {versions['python']}, Byrote "
        f"{versions['byrote']}.\nPostgreSQL: {settings}."
    )


def filesystem(path: Path) -> str:
    """The type of the file system of a path; in memory, fsync is free and figures are too good."""
    types = {}
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, type_, *_ = line.split()
        types[Path(mount)] = type_
    return next((types[mount] for mount in (path, *path.parents) if mount in types), "unknown")


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def _cpu(figure: Figure) -> list[str]:
    found = (figure.get("worker_cpu_us"), figure.get("postgres_cpu_us"))
    return ["" if value is None else f"{value:.1f}" for value in found]


def _rate(figure: Figure) -> str:
    return f"{figure['per_s']:,.0f}/s"


def _latency(figure: Figure) -> str:
    return ", ".join(f"p{n} {figure[f'p{n}_ms']:.2f} ms" for n in (50, 95, 99))


def _growth(figure: Figure) -> str:
    return (
        f"{figure['ratio']:.0%} of {figure['empty_per_s']:,.0f}/s in an empty database: "
        f"{figure['full_per_s']:,.0f}/s"
    )


_SAYS: Mapping[str, Callable[[Figure], str]] = {
    "latency": _latency,
    "growth": _growth,
    "http_rate": _latency,
}
_LABELS = {
    "enqueue_one": "enqueue one by one",
    "enqueue_bulk": "enqueue in bulk",
    "drain_async": "drain, async tasks",
    "drain_sync": "drain, sync tasks",
    "drain_inline": "drain, inline",
    "latency": "idle latency",
    "growth": "drain, database full",
    "http_one": "enqueue one by one over HTTP",
    "http_bulk": "enqueue in batches of 100 over HTTP",
    "http_rate": "enqueue at 200 requests/s over HTTP",
    "http_drain": "drain async no-ops over HTTP",
}
