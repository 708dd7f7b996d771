# SPDX-License-Identifier: MIT
"""Selects the runs to replay: one by its id or the hash of its spec, or the newest of a task."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from byrote.core.errors import BadOption, RunNotFound
from byrote.store import queries
from byrote.store.runners.sync import Store

LAST = 500
"""Default number of a task's runs to replay."""
LAST_MAX = 10_000
_HASH = re.compile(r"[0-9a-fA-F]{64}")
_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def find(store: Store, which: str) -> str:
    """Return the id of the run with this id or spec hash; raises RunNotFound.

    Of several runs of a spec it is the newest that has ended, if one has.
    """
    if _HASH.fullmatch(which):
        found = store.first(queries.latest_by_hash(which.lower(), ended=True))
    elif _ID.fullmatch(which):
        known = store.all(queries.is_accepted(which))[0] or store.all(queries.is_logged(which))[0]
        found = which.lower() if known else None
    else:
        raise BadOption(f"{which!r} is neither the id of a run nor the hash of a spec.")
    if found is None:
        raise RunNotFound(which)
    return found


def choose(
    store: Store,
    task: str,
    *,
    last: int | None = None,
    since: datetime | timedelta | None = None,
    failed: bool = False,
    version: int | None = None,
    labels: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the newest runs of a task that succeeded or failed; with `since`, all up to a limit.

    `version` and `labels` select among them.
    """
    limit = last if last is not None else LAST if since is None else LAST_MAX
    if not 1 <= limit <= LAST_MAX:
        raise BadOption(f"Replay the last 1 to {LAST_MAX:,} runs, not {last!r}.")
    which = queries.originals(
        task, limit=limit, since=since, failed=failed, version=version, labels=labels
    )
    return store.all(which)
