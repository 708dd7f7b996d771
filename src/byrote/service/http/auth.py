# SPDX-License-Identifier: MIT
"""Authenticates tokens and checks their rights.

A token is 256 random bits behind the prefix `byr_`; the database stores only its SHA-256. The
rights of a token are cached for three seconds, so that a revoked one is refused within five, and
its waiting requests and streams end. Everything that a token does not allow is denied.
"""

import asyncio
import contextlib
import hmac
import itertools
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from byrote.core.ports.executor import Clock
from byrote.core.text.ids import token_digest
from byrote.service.http.slots import Slots
from byrote.store import queries
from byrote.store.queries.tokens import Token
from byrote.store.runners.aio import AsyncStore
from byrote.wire.problems import Forbidden, TooMany, Unauthorized, Unavailable

PREFIX: Final = "byr_"
BELIEVED_S: Final = 3.0
LOOK_S: Final = 0.5
"""How often the tokens of waiting requests are checked again."""
CACHED_MAX: Final = 10_000
"""Valid tokens in the cache, and as many invalid ones."""
LOOKED_AT_ONCE: Final = 4
UNKNOWN_TOKENS_MAX: Final = 256
UNKNOWN_TOKENS_AT_ONCE: Final = 2
"""Unknown tokens looked up at once: the other connections are for known ones."""
ANY: Final = "*"
ROLES: Final = ("enqueue", "work", "read", "admin")


class Bucket:
    """How many requests a token may still send this second."""

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self._left = rate
        self._at = now

    def spend(self, now: float) -> None:
        """Take one; raises TooMany if there is none. A time before the last call counts as it."""
        now = max(now, self._at)
        self._left = min(self._left + (now - self._at) * self.rate, self.rate)
        self._at = now
        if self._left < 1:
            raise TooMany(
                f"This token may ask {self.rate:g} times a second here; send batches.",
                retry_after_s=1,
            )
        self._left -= 1


class Grant:
    """The rights of one token, when they expire from the cache, and its remaining rate."""

    def __init__(
        self, token: Token, *, rate: int, now: float, bucket: Bucket | None = None
    ) -> None:
        self.token = token
        self.queues: Sequence[str] | None = None if ANY in token.queues else token.queues
        self.tasks: Sequence[str] | None = None if ANY in token.tasks else token.tasks
        allowed = float(token.rate or rate)
        same = bucket is not None and bucket.rate == allowed
        self.bucket = bucket if bucket is not None and same else Bucket(allowed, now)
        self._until = now
        self._ended = False
        self._successor: Grant | None = None

    @property
    def until(self) -> float:
        """Until when the token is known to be valid."""
        return self._until if self._successor is None else self._successor.until

    @until.setter
    def until(self, moment: float) -> None:
        self._until = moment

    @property
    def ended(self) -> bool:
        """Whether the token was found to be revoked or expired."""
        return self._ended if self._successor is None else self._successor.ended

    def end(self) -> None:
        """The token is no longer valid."""
        self._ended = True

    def succeed(self, successor: "Grant") -> None:
        """The same token was found with other rights; both end together."""
        self._successor = successor

    @property
    def limited(self) -> bool:
        """Whether the token is limited to some queues or tasks."""
        return self.queues is not None or self.tasks is not None

    def allows(self, queue: str, task: str) -> bool:
        """Whether the token grants access to this queue and task."""
        return (self.queues is None or queue in self.queues) and (
            self.tasks is None or task in self.tasks
        )

    def sees(self, queues: Iterable[str], tasks: Iterable[str]) -> bool:
        """Whether the token grants access to all these queues and tasks, as `name@version`."""
        names = {task.rpartition("@")[0] for task in tasks}
        return (self.queues is None or set(queues) <= set(self.queues)) and (
            self.tasks is None or names <= set(self.tasks)
        )

    def serves(self, queues: Iterable[str], tasks: Iterable[str]) -> bool:
        """Whether the token grants access to any of these queues and tasks."""
        names = {task.rpartition("@")[0] for task in tasks}
        return (self.queues is None or not set(queues).isdisjoint(self.queues)) and (
            self.tasks is None or not names.isdisjoint(self.tasks)
        )

    def check_role(self, roles: Sequence[str]) -> None:
        """Raise Forbidden unless the token has the role; an admin has all roles."""
        if roles and self.token.role != "admin" and self.token.role not in roles:
            raise Forbidden(
                f"This needs a token with the role {' or '.join(roles)}; "
                f"this one has {self.token.role}."
            )

    def check(self, queues: Iterable[str] = (), tasks: Iterable[str] = ()) -> None:
        """Raise Forbidden for queues and tasks that the token does not grant."""
        for what, asked, allowed in (("queue", queues, self.queues), ("task", tasks, self.tasks)):
            if allowed is not None:
                for name in asked:
                    if name not in allowed:
                        raise Forbidden(f"This token is not for the {what} {name!r}.")


class Keyring:
    """Finds the rights of a token, and caches them for a few seconds.

    A token is looked up once for all requests that wait for the answer. Invalid tokens have their
    own cache, so that no number of them displaces valid ones.
    """

    def __init__(self, store: AsyncStore, clock: Clock, *, rate: int, token_s: float) -> None:
        self._store = store
        self._clock = clock
        self._rate = rate
        self._token_s = token_s
        self._known: dict[bytes, Grant] = {}
        self._strange: OrderedDict[bytes, float] = OrderedDict()
        self._looking: dict[bytes, asyncio.Task[Grant | None]] = {}
        self._watched: dict[bytes, set[asyncio.Future[None]]] = {}
        self._few = asyncio.Semaphore(UNKNOWN_TOKENS_AT_ONCE)
        self.unknown_tokens = Slots(
            UNKNOWN_TOKENS_MAX, "Too many unknown tokens are being looked up"
        )
        self.used: set[str] = set()
        """Tokens that were used since their use was last stored."""

    async def grant(self, authorization: str | None) -> Grant:
        """Return the rights of a header's token, perhaps from the cache."""
        scheme, _, secret = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not secret.startswith(PREFIX) or len(secret) > 200:
            raise Unauthorized("Send a token: `Authorization: Bearer byr_...`.")
        digest = token_digest(secret)
        known = self._known.get(digest)
        if known is None and self._strange.get(digest, 0.0) <= self._clock():
            with self.unknown_tokens.take(digest.hex()):
                known = await self._look_up(digest)
        if known is None:
            raise _unknown()
        return known

    async def spend(self, grant: Grant) -> None:
        """Count one request against the rate of a token; raises if the token is no longer valid."""
        now = self._clock()
        if grant.ended or grant.until <= now:
            await self.confirm(grant)
            now = self._clock()
        grant.bucket.spend(now)

    async def confirm(self, grant: Grant) -> None:
        """Raise Unauthorized if the token was revoked or has expired, or that cannot be read."""
        if grant.until <= self._clock():
            found = await self._look_up(grant.token.hash)
            if found is None:
                grant.end()
            elif found is not grant:
                grant.succeed(found)
        if grant.ended:
            raise _unknown()

    async def _look_up(self, digest: bytes) -> Grant | None:
        task = self._looking.get(digest)
        if task is None:
            task = self._looking[digest] = asyncio.ensure_future(self._find(digest))
            task.add_done_callback(lambda done: self._looked(digest, done))
        # Not a timeout around the statement: cancelling one takes long if the database hangs.
        await asyncio.wait({task}, timeout=self._token_s)
        if not task.done():
            raise Unavailable("The database does not answer.", retry_after_s=2)
        return task.result()

    def _looked(self, digest: bytes, done: "asyncio.Task[Grant | None]") -> None:
        self._looking.pop(digest, None)
        if not done.cancelled():
            done.exception()  # Else asyncio logs the exception as never retrieved.

    async def _find(self, digest: bytes) -> Grant | None:
        known = self._known.get(digest)
        async with contextlib.AsyncExitStack() as throttled:
            if known is None:
                await throttled.enter_async_context(self._few)
            asked_at = self._clock()
            token = await self._store.first(queries.token(digest))
        if token is None or not token.good or not hmac.compare_digest(token.hash, digest):
            self._forget(digest)
            return None
        if known is None or known.token != token:
            bucket = None if known is None else known.bucket
            known = Grant(token, rate=self._rate, now=asked_at, bucket=bucket)
            self._replace(digest, known)
        known.until = asked_at + BELIEVED_S
        self.used.add(token.id)
        return known

    def _replace(self, digest: bytes, grant: Grant) -> None:
        """Cache a grant; requests with the earlier grant keep the rights of that one."""
        if len(self._known) >= CACHED_MAX:
            oldest = sorted(self._known, key=lambda known: self._known[known].until)
            for known in oldest[: CACHED_MAX // 10]:
                del self._known[known]
        earlier = self._known.get(digest)
        if earlier is not None:
            earlier.succeed(grant)
        self._known[digest] = grant
        self._strange.pop(digest, None)

    def _forget(self, digest: bytes) -> None:
        """End the waiting requests of a token that is not valid."""
        ended = self._known.pop(digest, None)
        if ended is not None:
            ended.end()
        for waiting in self._watched.get(digest, ()):
            if not waiting.done():
                waiting.set_result(None)
        self._strange[digest] = self._clock() + BELIEVED_S
        self._strange.move_to_end(digest)
        if len(self._strange) > CACHED_MAX:
            self._strange.popitem(last=False)

    # -- Requests that last ----------------------------------------------------------------------

    @contextlib.contextmanager
    def watched(self, grant: Grant, gone: asyncio.Future[None]) -> Iterator[None]:
        """Call `gone` soon after the token has ended."""
        digest = grant.token.hash
        waiting = self._watched.setdefault(digest, set())
        waiting.add(gone)
        try:
            yield
        finally:
            waiting.discard(gone)
            if not waiting and self._watched.get(digest) is waiting:
                del self._watched[digest]

    async def run(self) -> None:
        """Check the tokens of waiting requests and streams again, while the process lives."""
        while True:
            await asyncio.sleep(LOOK_S)
            now = self._clock()
            due = [
                digest
                for digest in self._watched
                if (known := self._known.get(digest)) is None or known.until <= now
            ]
            for part in itertools.batched(due, LOOKED_AT_ONCE):
                await asyncio.gather(*map(self._look_up, part), return_exceptions=True)


def _unknown() -> Unauthorized:
    return Unauthorized("The token is not known, has expired or was revoked.")
