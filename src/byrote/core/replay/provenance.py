# SPDX-License-Identifier: MIT
"""The environment of an attempt as a document: the same environment has the same hash.

The document, as `executors/runtime/provenance/environment.py` measures it and a worker completes
it:

    code         tasks: for every task the hash of its function, that of its file
                 (`module`) and its top-level package (`tree`);
                 trees: for every such package the hash of its modules that were imported;
                 modules: the hash of every module of the project that a task uses, and
                 uses: for every module with tasks (`in`), which those are
    vcs          commit, and whether tracked files were changed (`dirty`)
    packages     installed distributions and their versions; packages_hash is theirs
    python, platform, image, byrote, environment
    worker       Byrote's version and Python's there, and a fingerprint of its settings
    executor     hand, inline, command or container
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from byrote.core.json.codec import pack
from byrote.core.json.diff import Changes, diff
from byrote.core.memo import Memo

SHOWN = 12
"""Characters of a hash that are shown."""


class Provenance(msgspec.Struct):
    """An environment that executes attempts; its number is known once it has been registered."""

    digest: str
    text: str
    id: int | None = None
    memos: Mapping[str, Memo] = {}
    """The memos of tasks (`name@version`) whose results are reused."""


def provenance_of(doc: Mapping[str, Any], memos: Mapping[str, Memo] | None = None) -> Provenance:
    """The document as it is stored, and the hash that it is stored under."""
    packed = pack(dict(doc))
    return Provenance(packed.digest.hex(), packed.text, memos=memos or {})


def seen_by(doc: Mapping[str, Any], task: str) -> dict[str, Any]:
    """Returns the parts of a document that concern one task (`name@version`)."""
    view = {name: part for name, part in doc.items() if name != "packages_hash"}
    code = _object(doc.get("code"))
    mine = code_of(doc, task)
    tree = _object(code.get("trees")).get(str(mine.get("tree")))
    used = _object(code.get("uses")).get(str(mine.get("in")))
    names = used if isinstance(used, list) else []
    modules = _object(code.get("modules"))
    view["code"] = {
        "function": mine.get("function"),
        "tree": tree,
        "modules": {str(name): modules.get(str(name)) for name in names},
        "files": _object(mine.get("files")),
    }
    return view


def code_of(doc: Mapping[str, Any], task: str) -> Mapping[str, Any]:
    """Returns the entry of one task (`name@version`) in a document."""
    return _object(_object(_object(doc.get("code")).get("tasks")).get(task))


def _object(part: object) -> Mapping[str, Any]:
    """Returns a part of a document, or {}: other workers may write documents of another form."""
    return part if isinstance(part, Mapping) else {}


def provenance_diff(
    old: Mapping[str, Any] | None,
    new: Mapping[str, Any] | None,
    *,
    task: str,
    task_old: str | None = None,
) -> Changes:
    """Returns the differences of two environments for a task; `task_old` is its key in the first.

    None stands for an unknown environment.
    """
    pairs = ((old, task_old or task), (new, task))
    return diff(*(None if doc is None else seen_by(doc, name) for doc, name in pairs))


def brief(doc: Mapping[str, Any], task: str) -> str:
    """Returns a summary of a document in one line."""
    view = seen_by(doc, task)
    vcs, code = _object(view.get("vcs")), view["code"]
    parts = [
        f"code {str(code['function'] or 'unknown')[:SHOWN]}",
        f"in {str(code['tree'] or 'unknown')[:SHOWN]}",
    ]
    if vcs.get("commit"):
        changed = " (changed)" if vcs.get("dirty") else ""
        parts.append(f"commit {str(vcs['commit'])[:SHOWN]}{changed}")
    parts += [
        f"Python {_object(view.get('python')).get('version', '?')}",
        f"{len(_object(view.get('packages')))} packages",
        f"Byrote {view.get('byrote', '?')}",
        f"by {view.get('executor', '?')}",
    ]
    return ", ".join(parts)
