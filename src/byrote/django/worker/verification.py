# SPDX-License-Identifier: MIT
"""Verified replay by a worker: the request is a run, and its result is the verdict.

The web process executes nothing. The admin enqueues a run of `tasks.verify` in the queue of the
run to verify, so that a worker with that run's code claims it. The worker opens a replay session
as `byrote replay --verify` does: a separate hand, a shadow run, recorded steps. The result is the
verdict, truncated to what a page shows; it is kept after the shadow run has been pruned.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

import msgspec

from byrote.assembly.identity import jitter
from byrote.assembly.operations.address import address_of
from byrote.assembly.replay.session import ReplayOptions, replay_session
from byrote.assembly.settings import resolve
from byrote.core.replay.verdict import Replayed
from byrote.django.app import backend_of, imports
from byrote.django.worker.connection import flags_of
from byrote.store.runners.sync import Store

PARTS = ("result", "artifacts", "provenance")
CHANGES_MAX = 20
VALUE_MAX = 500
"""Maximum number of characters of one value in a stored verdict."""


def verdict_on(alias: str, run_id: str) -> dict[str, Any]:
    """Execute a run of this backend again in this process; returns the verdict to store."""
    backend = backend_of(alias)
    flags = flags_of(backend)
    settings = resolve(flags).settings
    address = address_of(settings, flags["database_url"], name="byrote verify")
    with contextlib.closing(Store(address, jitter=jitter)) as store:
        session = replay_session(
            f"byrote.django.app:{alias}",
            settings,
            store,
            ReplayOptions(),
            recognise=lambda unknown: imports(backend, unknown),
        )
        with session as opened:
            [verdict] = opened.perform([run_id])
    return stored_form(verdict)


def stored_form(verdict: Replayed) -> dict[str, Any]:
    """A verdict with the fields of `byrote replay --json`, its differences truncated."""
    fields: dict[str, Any] = msgspec.to_builtins(verdict)
    return fields | {name: _cut(fields[name]) for name in PARTS if name in fields}


def _cut(found: Mapping[str, Any]) -> dict[str, Any]:
    changes = found["changes"]
    return {
        "changes": [
            {
                "path": change["path"],
                "kind": change["kind"],
                "old": "" if change["kind"] == "added" else _text(change["old"]),
                "new": "" if change["kind"] == "removed" else _text(change["new"]),
            }
            for change in changes[:CHANGES_MAX]
        ],
        "cut": found["cut"] or len(changes) > CHANGES_MAX,
    }


def _text(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= VALUE_MAX else f"{text[: VALUE_MAX - 1]}…"
