# SPDX-License-Identifier: MIT
"""`byrote runs artifacts` and `byrote runs fetch`: what a run has stored."""

import os
import sys
from pathlib import Path
from typing import Any

import click

from byrote.artifacts.artifact import Artifact
from byrote.assembly.artifacts import artifact_of, artifacts_of
from byrote.cli.database import open_store, whole_id
from byrote.cli.options import RunId, database_options, url_option
from byrote.cli.output.tables import print_json, print_table
from byrote.core.errors import BadOption

HEADS = ("attempt", "name", "size", "media type", "hash", "location", "at")
FIELDS = ("run_id", "attempt", "name", "size", "media_type", "hash", "location", "at")
STDOUT = "-"


@click.command(epilog="Example: byrote runs artifacts 01932c4e-8d5b-7a90-b1c2-3d4e5f607182")
@click.argument("begun", metavar="ID", type=RunId())
@database_options
def artifacts(begun: str, *, url: str | None, as_json: bool) -> None:
    """List what a run has stored, attempt by attempt."""
    with open_store(url) as store:
        found = artifacts_of(store, whole_id(store, begun))
    if as_json:
        for artifact in found:
            print_json({field: getattr(artifact, field) for field in FIELDS})
    else:
        print_table(HEADS, map(_row, found), empty="Nothing was stored.")


def _row(artifact: Artifact) -> tuple[Any, ...]:
    return (
        artifact.attempt,
        artifact.name,
        artifact.size,
        artifact.media_type,
        artifact.hash[:16],
        artifact.location,
        artifact.at,
    )


@click.command(epilog="Example: byrote runs fetch 01932c4e report.csv -o - | head")
@click.argument("begun", metavar="ID", type=RunId())
@click.argument("name")
@url_option
@click.option("--attempt", type=click.IntRange(min=1), help="Of this attempt; default: the newest.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Target; - is standard output. Default: a new file with the artifact's name.",
)
def fetch(
    begun: str, name: str, *, url: str | None, attempt: int | None, output: str | None
) -> None:
    """Copy an artifact's content to a file or to standard output, checking its hash.

    The file appears only when it is complete and its hash is right. Exits with 4 if the artifact
    does not exist, with 1 if its content is damaged.
    """
    with open_store(url) as store:
        artifact = artifact_of(store, whole_id(store, begun), name, attempt=attempt)
        if output == STDOUT:
            for chunk in artifact.chunks():
                sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
            return
        target = Path(output) if output else Path(name.rpartition("/")[2])
        if output is None and target.exists():
            raise BadOption(f"The file {target} exists; name another with -o.")
        _write(artifact, target)
    click.echo(f"{target}  {artifact.size:,} bytes  {artifact.hash}", err=True)


def _write(artifact: Artifact, target: Path) -> None:
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            for chunk in artifact.chunks():
                file.write(chunk)
        part.replace(target)
    except OSError as error:
        raise BadOption(f"{target} cannot be written: {error.strerror}.") from None
    finally:
        part.unlink(missing_ok=True)
