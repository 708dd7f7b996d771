# SPDX-License-Identifier: MIT
"""Enqueues an earlier run's spec again as a normal run, unless its row was altered."""

from byrote.assembly.identity import new_id
from byrote.core.errors import AlteredSpec, BadOption, RunNotFound
from byrote.core.replay.verdict import is_sound
from byrote.store import queries
from byrote.store.runners.sync import Store


def enqueue_again(store: Store, original: str) -> str:
    """Return the id of the new run; raises AlteredSpec if the spec does not match its hash."""
    run = store.first(queries.run(original))
    if run is None:
        raise RunNotFound(original)
    if run.shadow:
        raise BadOption(f"Run {run.id} is a shadow of run {run.replay_of}; replay that one.")
    if not is_sound(run):
        raise AlteredSpec(run.id)
    run_id = new_id()
    if not store.all(queries.replay(original=original, id=run_id)):
        raise RunNotFound(original)  # It was pruned in the meantime.
    return run_id
