# SPDX-License-Identifier: MIT
"""What executed an attempt, as a document with a hash: the same environment, the same hash.

The document, as `executors/surroundings.py` measures it and a worker completes it:

    code         tasks: for every task the hash of its function, that of the file it stands in
                 (`module`) and its top-level package (`tree`);
                 trees: for every such package the hash of its modules that were imported
    vcs          commit, and whether tracked files were changed (`dirty`)
    packages     installed distributions and their versions; packages_hash is theirs
    python, platform, image, byrote, environment
    worker       Byrote's version and Python's there, and a fingerprint of its settings
    executor     hand, inline, command or container
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from byrote.core.codec import pack
from byrote.core.diff import Changes, diff
from byrote.core.memo import Memo

SHOWN = 12
"""Characters of a hash that are enough for people."""


class Provenance(msgspec.Struct):
    """An environment that executes attempts; its number is known once it has been registered."""

    digest: str
    text: str
    id: int | None = None
    memos: Mapping[str, Memo] = {}
    """What is remembered of results that came about here, by task (`name@version`)."""


def provenance_of(doc: Mapping[str, Any], memos: Mapping[str, Memo] | None = None) -> Provenance:
    """The document as it is stored, and the hash that it is stored under."""
    packed = pack(dict(doc))
    return Provenance(packed.digest.hex(), packed.text, memos=memos or {})


def seen_by(doc: Mapping[str, Any], task: str) -> dict[str, Any]:
    """What of a document matters for one task (`name@version`): not the code of all others."""
    view = {name: part for name, part in doc.items() if name != "packages_hash"}
    code = doc.get("code", {})
    mine = code.get("tasks", {}).get(task, {})
    tree = code.get("trees", {}).get(mine.get("tree"))
    view["code"] = {"function": mine.get("function"), "tree": tree}
    return view


def provenance_diff(
    old: Mapping[str, Any] | None, new: Mapping[str, Any] | None, *, task: str
) -> Changes:
    """What differs between two environments for a task; None stands for one nobody knows."""
    views = [None if doc is None else seen_by(doc, task) for doc in (old, new)]
    return diff(*views)


def brief(doc: Mapping[str, Any], task: str) -> str:
    """A document in one line for people."""
    view = seen_by(doc, task)
    vcs, code = view.get("vcs") or {}, view["code"]
    parts = [
        f"code {(code['function'] or 'unknown')[:SHOWN]}",
        f"in {(code['tree'] or 'unknown')[:SHOWN]}",
    ]
    if vcs.get("commit"):
        parts.append(f"commit {vcs['commit'][:SHOWN]}{' (changed)' if vcs.get('dirty') else ''}")
    parts += [
        f"Python {view.get('python', {}).get('version', '?')}",
        f"{len(view.get('packages', {}))} packages",
        f"Byrote {view.get('byrote', '?')}",
        f"by {view.get('executor', '?')}",
    ]
    return ", ".join(parts)
