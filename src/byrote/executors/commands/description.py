# SPDX-License-Identifier: MIT
"""Reads the tasks of an app from a process that imports it; the worker itself never does."""

import subprocess

import msgspec

from byrote.core.errors import BadOption
from byrote.executors.shared.messages import Introduction

PATIENCE_S = 60.0
"""How long the import of an app may take."""
NOT_DESCRIBED = Introduction({}, {}, url=None, provenance={}, memos={}, ignores={})
"""An app of which nothing is known yet."""


def describe(python: str, app: str) -> Introduction:
    """The introduction of an app, which a separate process imports."""
    argv = [python, "-m", "byrote.executor", "--app", app, "--describe"]
    try:
        asked = subprocess.run(argv, capture_output=True, check=False, timeout=PATIENCE_S)  # noqa: S603 -- our own module.
    except OSError as error:
        raise BadOption(f"{python} cannot be started: {error.strerror}.") from None
    except subprocess.TimeoutExpired:
        raise BadOption(f"Importing {app} took longer than {PATIENCE_S:g} s.") from None
    if asked.returncode != 0:
        errors = asked.stderr.decode("utf-8", "backslashreplace").strip()
        raise BadOption(errors.splitlines()[-1] if errors else f"{app} cannot be imported.")
    try:
        return msgspec.json.decode(asked.stdout.splitlines()[-1], type=Introduction)
    except (IndexError, msgspec.DecodeError):
        raise BadOption(
            f"{' '.join(argv)} did not print what it must; does {app} print or end on import?"
        ) from None
