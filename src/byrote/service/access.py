# SPDX-License-Identifier: MIT
"""Who asks, and what they may do.

A token is 256 random bits behind the prefix `byr_`; the database knows its SHA-256 only. What was
found for a token is believed for three seconds, so that a revoked one is refused within five.
Everything is denied that a token does not allow.
"""

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from typing import Final

from byrote.core.ports import Clock
from byrote.store import tokens
from byrote.store.aio import AsyncStore
from byrote.store.tokens import Token
from byrote.wire.problems import Forbidden, TooMany, Unauthorized

PREFIX: Final = "byr_"
BELIEVED_S: Final = 3.0
CACHED_MAX: Final = 10_000
ANY: Final = "*"
ROLES: Final = ("enqueue", "work", "read", "admin")


class Grant:
    """What one token may do, and how much of it is left for now."""

    def __init__(self, token: Token, *, rate: int, now: float) -> None:
        self.token = token
        self.queues: Sequence[str] | None = None if ANY in token.queues else token.queues
        self.tasks: Sequence[str] | None = None if ANY in token.tasks else token.tasks
        self._rate = float(token.rate or rate)
        self._left = self._rate
        self._at = now

    @property
    def limited(self) -> bool:
        """Whether there are queues or tasks the token is not for."""
        return self.queues is not None or self.tasks is not None

    def allows(self, queue: str, task: str) -> bool:
        """Whether runs of this task in this queue are any business of this token."""
        return (self.queues is None or queue in self.queues) and (
            self.tasks is None or task in self.tasks
        )

    def check_role(self, roles: Sequence[str]) -> None:
        """Refuse what is not this token's role; an admin has them all."""
        if roles and self.token.role != "admin" and self.token.role not in roles:
            raise Forbidden(
                f"This needs a token with the role {' or '.join(roles)}; "
                f"this one has {self.token.role}."
            )

    def check(self, queues: Iterable[str] = (), tasks: Iterable[str] = ()) -> None:
        """Refuse queues and tasks that the token is not for."""
        for what, asked, allowed in (("queue", queues, self.queues), ("task", tasks, self.tasks)):
            if allowed is not None:
                for name in asked:
                    if name not in allowed:
                        raise Forbidden(f"This token is not for the {what} {name!r}.")

    def spend(self, now: float) -> None:
        """Take one request from what the token may ask a second."""
        self._left = min(self._left + (now - self._at) * self._rate, self._rate)
        self._at = now
        if self._left < 1:
            raise TooMany(
                f"This token may ask {self._rate:g} times a second here; send batches.",
                retry_after_s=1,
            )
        self._left -= 1


class Keyring:
    """Finds what a token may do, and remembers it for a moment."""

    def __init__(self, store: AsyncStore, clock: Clock, *, rate: int) -> None:
        self._store = store
        self._clock = clock
        self._rate = rate
        self._known: dict[bytes, tuple[float, Grant | None]] = {}
        self.used: set[str] = set()
        """Tokens that were used since somebody last noted it."""

    async def grant(self, authorization: str | None) -> Grant:
        """What the bearer of this header may do; Unauthorized when that is nothing."""
        scheme, _, secret = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not secret.startswith(PREFIX) or len(secret) > 200:
            raise Unauthorized("Send a token: `Authorization: Bearer byr_...`.")
        digest = digest_of(secret)
        now = self._clock()
        until, found = self._known.get(digest, (0.0, None))
        if until <= now:
            found = await self._look_up(digest, found, now)
        if found is None:
            raise Unauthorized("The token is not known, has expired or was revoked.")
        found.spend(now)
        return found

    async def _look_up(self, digest: bytes, known: Grant | None, now: float) -> Grant | None:
        token = await self._store.first(tokens.token(digest))
        if len(self._known) >= CACHED_MAX:
            self._known.clear()
        grant: Grant | None = None
        if token is not None and token.good and hmac.compare_digest(token.hash, digest):
            # The same rights keep their bucket: a new one would be full again.
            grant = known if known and known.token == token else None
            grant = grant or Grant(token, rate=self._rate, now=now)
            self.used.add(token.id)
        self._known[digest] = (now + BELIEVED_S, grant)
        return grant


def digest_of(secret: str) -> bytes:
    """What the database knows of a token."""
    return hashlib.sha256(secret.encode()).digest()
