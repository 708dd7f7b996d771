# SPDX-License-Identifier: MIT
"""Queries of artifacts."""

from collections.abc import Sequence
from typing import Any

from byrote.core.artifact import COUNT_MAX, ArtifactEntry
from byrote.core.ports import replies
from byrote.core.run import Leased
from byrote.store.query import Query


def artifact(
    lease: Leased,
    *,
    name: str,
    digest: bytes,
    size: int,
    media_type: str,
    location: str,
    data: bytes | None,
) -> Query[replies.ArtifactReply]:
    """Store an artifact under a lease; small contents are sent as `data`."""
    args: dict[str, Any] = {"id": lease.id, "token": lease.token, "name": name, "hash": digest}
    args |= {"size": size, "media_type": media_type, "location": location, "data": data}
    return Query(
        "artifact", args | {"count_max": COUNT_MAX}, lambda row: replies.ArtifactReply(*row)
    )


def artifacts(run_id: str) -> Query[ArtifactEntry]:
    """Every artifact of a run, attempt by attempt."""
    return Query("artifacts", {"id": run_id}, lambda row: ArtifactEntry(*row))


def artifact_prefix() -> Query[str]:
    """The prefix of this database's objects in storage that other databases may share."""
    return Query("artifact_prefix", {}, lambda row: str(row[0]))


def blob(digest: str) -> Query[bytes]:
    """The content of a small artifact."""
    return Query("blob", {"hash": digest}, lambda row: bytes(row[0]))


def referenced(hashes: Sequence[str]) -> Query[str]:
    """Which of these hashes an artifact refers to."""
    args = {"hashes": [bytes.fromhex(digest) for digest in hashes]}
    return Query("referenced", args, lambda row: str(row[0]))


def prune_artifacts(*, after: str, limit: int = 500) -> Query[replies.Walked]:
    """Delete a page of artifacts whose runs were pruned."""
    return Query(
        "prune_artifacts", {"after": after, "limit": limit}, lambda row: replies.Walked(*row)
    )


def prune_blobs(*, after: str, limit: int = 500) -> Query[replies.Walked]:
    """Delete a page of small contents that no artifact refers to."""
    return Query("prune_blobs", {"after": after, "limit": limit}, lambda row: replies.Walked(*row))
