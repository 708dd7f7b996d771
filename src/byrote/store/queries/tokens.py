# SPDX-License-Identifier: MIT
"""Queries of tokens, the audit and idempotent requests."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from byrote.store.query import Query, Resend

KEEP_KEYS = timedelta(days=1)


KEEP_AUDIT = timedelta(days=400)


AUDITED_MAX = 100
"""The most runs that an audit entry names; the event log has all of them."""


class Token(msgspec.Struct, frozen=True):
    """The rights of a token; not its secret."""

    id: str
    holder: str
    hash: bytes
    name: str
    role: str
    queues: list[str]
    tasks: list[str]
    rate: int | None
    expires_at: datetime | None
    good: bool
    """Neither revoked nor expired."""


class TokenRow(msgspec.Struct, frozen=True):
    """A token as it is listed."""

    id: str
    holder: str
    name: str
    role: str
    queues: list[str]
    tasks: list[str]
    rate: int | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None


class Audited(msgspec.Struct, frozen=True):
    """An entry of the audit."""

    at: datetime
    token_id: str | None
    items: int
    action: str
    request_id: str
    address: str | None
    subject: str | None
    runs: list[str] | None


class Keyed(msgspec.Struct, frozen=True):
    """The reply to a keyed request."""

    request_hash: bytes
    reply: str


def token(digest: bytes) -> Query[Token]:
    """The token with this hash, valid or not."""
    return Query("token", {"hash": digest}, lambda row: Token(*row))


def tokens() -> Query[TokenRow]:
    """Every token, newest first."""
    return Query("tokens", {}, lambda row: TokenRow(*row))


def create_token(
    *,
    id: str,  # noqa: A002 -- the column's name.
    digest: bytes,
    name: str,
    role: str,
    queues: Sequence[str],
    tasks: Sequence[str],
    expires: timedelta | None = None,
    rate: int | None = None,
) -> Query[str]:
    """Store a new token by its hash."""
    args: dict[str, Any] = {"id": id, "hash": digest, "name": name, "role": role}
    args |= {"queues": list(queues), "tasks": list(tasks), "expires": expires, "rate": rate}
    return Query("create_token", args, lambda row: str(row[0]), Resend.ONCE)


def rotate_token(
    *,
    old: str,
    id: str,  # noqa: A002 -- the column's name.
    digest: bytes,
    overlap: timedelta,
    expires: timedelta | None,
) -> Query[str]:
    """Add a token beside an old one, which expires after `overlap`; no row: no such token."""
    args = {"old": old, "id": id, "hash": digest, "overlap": overlap, "expires": expires}
    return Query("rotate_token", args, lambda row: str(row[0]), Resend.ONCE)


def extend_token(token_id: str, *, expires: timedelta) -> Query[str]:
    """Let a token expire this long from now."""
    args = {"id": token_id, "expires": expires}
    return Query("extend_token", args, lambda row: str(row[0]))


def revoke_token(token_id: str) -> Query[str]:
    """Revoke a token now."""
    return Query("revoke_token", {"id": token_id}, lambda row: str(row[0]))


def use_tokens(ids: Sequence[str]) -> Query[str]:
    """Record that tokens were used."""
    return Query("use_tokens", {"ids": list(ids)}, lambda row: str(row[0]))


def audit(
    *,
    token_id: str | None,
    action: str,
    request_id: str,
    address: str | None,
    subject: str | None = None,
    runs: Sequence[str] = (),
    items: int | None = None,
) -> Query[None]:
    """Record who changed what; runs in one transaction with the change."""
    args = {
        "token": token_id,
        "items": len(runs) if items is None else items,
        "action": action,
        "request": request_id,
        "address": address,
        "subject": subject,
        "runs": list(runs[:AUDITED_MAX]),
    }
    return Query("audit", args, lambda _row: None)


def audits(*, limit: int = 100) -> Query[Audited]:
    """The latest entries of the audit."""
    return Query("audits", {"limit": limit}, lambda row: Audited(*row))


def store_reply(*, holder: str, key: str, digest: bytes, reply: str) -> Query[None]:
    """Store the reply to a keyed request; runs in one transaction with its effect."""
    args = {"holder": holder, "key": key, "hash": digest, "reply": reply}
    return Query("store_reply", args, lambda _row: None)


def stored_reply(*, holder: str, key: str) -> Query[Keyed]:
    """The stored reply to a keyed request."""
    return Query("stored_reply", {"holder": holder, "key": key}, lambda row: Keyed(row[0], row[1]))


def prune_service(
    *,
    keep_keys: timedelta = KEEP_KEYS,
    keep_audit: timedelta = KEEP_AUDIT,
) -> Query[tuple[int, int]]:
    """Delete old replies and audit entries; returns how many of each."""
    args = {"keep_keys": keep_keys, "keep_audit": keep_audit}
    return Query("prune_service", args, lambda row: (row[0], row[1]))
