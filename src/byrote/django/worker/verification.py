# SPDX-License-Identifier: MIT
"""Verified replay that somebody asks for and a worker does: the request is a run, as is its answer.

Whoever presses the button executes nothing. The request is enqueued as a run of `tasks.verify`, in
the queue of the run it is about, so that a worker with that run's code takes it. There a stage is
opened as `byrote replay --verify` does: a hand of its own, a shadow run, recorded steps. The result
is the verdict, cut to what a page shows; it stays when the shadow run has been pruned.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

import msgspec

from byrote.assembly.identity import chance
from byrote.assembly.replay.session import ReplayOptions, open_stage
from byrote.assembly.settings import resolve
from byrote.core.replay.verdict import Replayed
from byrote.django.app import backend_of, imports
from byrote.django.worker.connection import flags_of
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import Store

PARTS = ("result", "artifacts", "provenance")
CHANGES_MAX = 20
VALUE_MAX = 500
"""Characters of one value that a verdict keeps."""


def verdict_on(alias: str, run_id: str) -> dict[str, Any]:
    """Execute a run of this backend again, here and now, and say what came of it."""
    backend = backend_of(alias)
    flags = flags_of(backend)
    settings = resolve(flags).settings
    door = DatabaseAddress(flags["database_url"], name="byrote verify", pooled=settings.pooled)
    with contextlib.closing(Store(door, chance=chance)) as store:
        stage = open_stage(
            f"byrote.django.app:{alias}",
            settings,
            store,
            ReplayOptions(),
            recognise=lambda stranger: imports(backend, stranger),
        )
        with stage as opened:
            [verdict] = opened.perform([run_id])
    return told(verdict)


def told(verdict: Replayed) -> dict[str, Any]:
    """A verdict in the words of `byrote replay --json`, its differences cut to size."""
    words: dict[str, Any] = msgspec.to_builtins(verdict)
    return words | {name: _cut(words[name]) for name in PARTS if name in words}


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
