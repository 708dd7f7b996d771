# SPDX-License-Identifier: MIT
"""A simulated world: workers, clients and a database under virtual time, with crashes everywhere.

One seed is one history, replayed exactly. Actors are generators; wherever one waits or asks it may
crash for good, freeze for up to three leases, or lose its question or the answer to it; a question
may arrive after its sender gave it up, and a transaction may be undone after its rows were sent.
The database is the pure model; what follows from an outcome is decided by the real `judge`.

What is simulated is the protocol a worker follows (claim, ask again after a lost answer, renew,
stop by its own deadline, finish, ask whether a lost finish counted), not the worker's threads.
"""

import copy
import heapq
import random
from collections.abc import Callable, Generator
from datetime import timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from byrote.core.duration import micros
from byrote.core.log.audit import LogAudit
from byrote.core.log.findings import DatabaseFacts, Finding
from byrote.core.outcome import Crashed, Failed, Fault, Outcome, Released, Snoozed, Succeeded
from byrote.core.policy import RetryIn, SnoozeFor, judge
from byrote.core.run import Leased
from byrote.core.verdict import LETTERS
from tests.sim.model import KINDS, SPEC_HASH, START, Model, kept

LEASE_S = 3.0
LEASE = timedelta(seconds=LEASE_S)
FAULTS_UNTIL_S = 30.0
END_S = 400.0
PATIENCE_S = 1.0
LOST = object()
"""The answer of an actor whose request or reply was lost: it does not know which."""
SUCCEEDED = Succeeded("null", "")
FAULT = Fault("raised", "E")


class Odds(NamedTuple):
    """How often, of a hundred, an actor crashes, freezes, or loses a message.

    `late`: its question arrives after it has given it up. `undo`: its transaction is rolled back
    after the rows were sent.
    """

    crash: float = 1.5
    freeze: float = 3.0
    lose: float = 5.0
    late: float = 2.0
    undo: float = 2.0


class Wait(NamedTuple):
    seconds: float


class Ask(NamedTuple):
    verb: Callable[[Model], Any]


type Actor = Generator[Wait | Ask, Any, None]


class Belief(NamedTuple):
    """A while in which a worker took a run for its own."""

    run: str
    since: float
    until: float


class Session:
    """An actor's connection: once it has ended, nothing that was sent on it arrives."""

    ended = False


class Reported(NamedTuple):
    """What a worker believes has become of an attempt: a verdict's letter, or None for lost."""

    run: str
    attempt: int
    letter: str | None


ANY = "?"
"""The letter of an attempt that was settled with an unknown verdict."""


class World:
    """One history: `run` it, then ask what was found.

    With `hasty` actors rows are taken for a commit; with `careless` ones, which read the outcome
    of a lost request, the session that could still bring it is not ended first.
    """

    def __init__(
        self,
        seed: int,
        *,
        odds: Odds | None = None,
        fenced: bool = True,
        hasty: bool = False,
        careless: bool = False,
    ) -> None:
        self.hasty = hasty
        self.careless = careless
        self.reported: list[Reported] = []
        self.doubled: set[str] = set()
        """Runs that were accepted a second time, after they had moved."""
        self.undone = 0
        self.dice = random.Random(seed)
        self.odds = odds or Odds()
        self.model = Model(fenced=fenced)
        self.time = 0.0
        self.acknowledged: set[str] = set()
        self.beliefs: list[Belief] = []
        self.crashes = self.freezes = self.losses = self.refused = 0
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._ids = 0

    def run(self) -> list[Finding]:
        """Run the simulation; returns every violation."""
        for n in range(3):
            self._live(f"w{n}", lambda n=n: self.worker(f"w{n}"))
        self._live("sweeper", self.sweeper)
        self._live("client", self.client, mortal=False)
        self._live("meddler", self.meddler, mortal=False)
        while self._agenda and self.time < END_S and not self.over:
            self.time, _, act = heapq.heappop(self._agenda)
            self.model.now = START + timedelta(seconds=self.time)
            act()
        return list(self.findings())

    @property
    def over(self) -> bool:
        """Whether the faults are past and nothing is left to do."""
        live = {"WAITING", "READY", "RUNNING"}
        rows = self.model.rows.values()
        return self.time > FAULTS_UNTIL_S and not any(row.status in live for row in rows)

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._agenda, (self.time + seconds, self._count, act))

    def _strikes(self, percent: float) -> bool:
        return self.time < FAULTS_UNTIL_S and self.dice.random() * 100 < percent

    def _live(self, name: str, born: Callable[[], Actor], *, mortal: bool = True) -> None:
        actor, sessions = born(), [Session()]

        def resume(answer: Any) -> None:
            if mortal and self._strikes(self.odds.crash):
                self.crashes += 1
                actor.close()
                self._later(self.dice.uniform(0.1, LEASE_S), lambda: self._live(name, born))
                return
            if mortal and self._strikes(self.odds.freeze):
                self.freezes += 1
                self._later(self.dice.uniform(0, 3 * LEASE_S), lambda: proceed(answer))
                return
            proceed(answer)

        def proceed(answer: Any) -> None:
            try:
                wish = actor.send(answer)
            except StopIteration:
                return
            if isinstance(wish, Wait):
                self._later(wish.seconds, lambda: resume(None))
            else:
                self._ask(wish.verb, resume, sessions)

        proceed(None)

    def _ask(
        self, verb: Callable[[Model], Any], resume: Callable[[Any], None], sessions: list[Session]
    ) -> None:
        session = sessions[-1]
        belated = lambda: None if session.ended else verb(self.model)  # noqa: E731

        def arrive() -> None:
            if not self.careless:
                for earlier in sessions[: sessions.index(session)]:
                    earlier.ended = True
            if self._strikes(self.odds.undo):
                self._undo(verb, resume, sessions)
                return
            answer = verb(self.model)
            if self._strikes(self.odds.lose):
                self._lose(resume, sessions)
            else:
                self._later(self.dice.uniform(0.001, 0.3), lambda: resume(answer))

        if self._strikes(self.odds.late):
            self._lose(resume, sessions)
            self._later(PATIENCE_S + self.dice.uniform(0, 2 * PATIENCE_S), belated)
        elif self._strikes(self.odds.lose):
            self._lose(resume, sessions)
        else:
            self._later(self.dice.uniform(0.001, 0.3), arrive)

    def _lose(self, resume: Callable[[Any], None], sessions: list[Session]) -> None:
        self.losses += 1
        sessions.append(Session())
        self._later(PATIENCE_S, lambda: resume(LOST))

    def _undo(
        self, verb: Callable[[Model], Any], resume: Callable[[Any], None], sessions: list[Session]
    ) -> None:
        """The rows are sent, and then the commit fails."""
        self.undone += 1
        answer = verb(copy.deepcopy(self.model))
        if self.hasty:
            self._later(self.dice.uniform(0.001, 0.3), lambda: resume(answer))
        else:
            # A line sends it again by itself: that it had no effect is certain.
            self._later(self.dice.uniform(0.01, 0.3), lambda: self._ask(verb, resume, sessions))

    def _name(self) -> str:
        self._ids += 1
        return f"{self._ids:08d}"

    def client(self) -> Actor:
        for _ in range(self.dice.randint(2, 6)):
            yield Wait(self.dice.uniform(0, 4))
            run_id = self._name()
            delay = timedelta(seconds=self.dice.choice([0, 0, 5]))
            attempts = self.dice.randint(1, 3)
            yield from self._enqueue(run_id, delay, attempts)

    def _enqueue(self, run_id: str, delay: timedelta, attempts: int) -> Actor:
        def send(model: Model, *, resent: bool = False) -> bool:
            if not model.known(run_id):
                model.enqueue([run_id], queue="q", delay=delay, priority=0, attempts=attempts)
            elif model.rows[run_id].table == "dead" and not resent:
                # The primary key refuses a row of the same table; a second copy checks the others.
                self.doubled.add(run_id)
            return True

        sent = yield Ask(send)
        while sent is LOST:
            if (yield Ask(lambda model: model.known(run_id))) is True:
                break
            sent = yield Ask(lambda model: send(model, resent=True))
        self.acknowledged.add(run_id)

    def meddler(self) -> Actor:
        for _ in range(4):
            yield Wait(self.dice.uniform(2, 9))
            verb = self.dice.choice(["cancel", "retry"])
            known = sorted(self.acknowledged)
            ids = self.dice.sample(known, min(1, len(known)))
            yield Ask(lambda model, verb=verb, ids=ids: getattr(model, verb)(ids))

    def sweeper(self) -> Actor:
        while True:
            yield Wait(self.dice.uniform(0.2, 1.0))
            yield Ask(lambda model: (model.promote(), model.sweep()))

    def worker(self, name: str) -> Actor:
        while True:
            token = f"{name}-{self._name()}"
            sent = self.time
            claimed = yield Ask(lambda model, token=token: self._claim(model, name, token))
            while claimed is LOST:
                claimed = yield Ask(lambda model, token=token: self._leased(model, token))
            if not claimed:
                yield Wait(self.dice.uniform(0.1, 0.5))
            for run in claimed:
                run.deadline = sent + LEASE_S
                yield from self._attempt(run)

    def _claim(self, model: Model, name: str, token: str) -> list[Leased]:
        best = [row.id for row in model.ready("q")[: self.dice.randint(1, 2)]]
        model.claim(name, token, ids=best, lease=LEASE)
        return self._leased(model, token)

    def _leased(self, model: Model, token: str) -> list[Leased]:
        found = []
        for run_id, attempt in model.claimed(token):
            row = model.rows[run_id]
            budget = (row.charged, row.losses, row.max_attempts)
            found.append(
                Leased(
                    run_id, "q", "t", 1, "{}", attempt, *budget, None, None, None, None,
                    SPEC_HASH, row.rank, 0, 0, token, 0.0,
                )
            )  # fmt: skip
        return found

    def _attempt(self, run: Leased) -> Actor:
        begun, left = self.time, self.dice.choice([0.1, 0.5, 2.0, 7.0])
        while left > 0:
            piece = min(left, LEASE_S / 3)
            yield Wait(piece)
            left -= piece
            if self.time >= run.deadline:
                break
            asked = self.time
            mine = (run.id, run.token, run.attempt)
            kept_ids = yield Ask(lambda model, mine=mine: model.renew([mine], lease=LEASE))
            if kept_ids is not LOST:
                if run.id not in kept_ids:
                    break
                run.deadline = asked + LEASE_S
        until = min(self.time, run.deadline)
        if until > begun:
            self.beliefs.append(Belief(run.id, begun, until))
        # An actor that overslept sends all the same: the database must reject it.
        yield from self._finish(run, self._outcome())

    def _outcome(self) -> Outcome:
        return self.dice.choice(
            [
                *[SUCCEEDED] * 4,
                Failed(FAULT),
                Failed(FAULT, after=timedelta(seconds=2)),
                Snoozed(timedelta(seconds=1)),
                Released(),
                Crashed(FAULT),
            ]
        )

    def _finish(self, run: Leased, outcome: Outcome) -> Actor:
        verdict = judge(run, outcome)
        delay = verdict.delay if isinstance(verdict, RetryIn | SnoozeFor) else timedelta()
        row = (run.id, run.token, run.attempt, LETTERS[type(verdict)], micros(delay))
        sent_before = False
        while True:
            heard = yield Ask(lambda model: model.finish([row]))
            if heard is not LOST and (run.id in heard or not sent_before):
                break
            sent_before = True
            settled = LOST
            while settled is LOST:
                settled = yield Ask(lambda model: _settled(model, run))
            if settled or heard is not LOST:
                heard = {run.id: ANY} if settled else {}
                break
        self.refused += run.id not in heard
        self.reported.append(Reported(run.id, run.attempt, heard.get(run.id)))

    def findings(self) -> Generator[Finding]:
        """The verifier's findings, missing runs, and leases believed by two actors at once."""
        now = self.model.now
        scene = DatabaseFacts(
            now, START, alive=False, quiet={}, kept_until={}, environments=frozenset()
        )
        for row in self.model.rows.values():
            examiner = LogAudit(row.id, scene)
            for told in row.told:
                examiner.add(told, queue="q")
            yield from examiner.close(kept(row))
            if row.status in {"WAITING", "READY", "RUNNING"}:
                yield Finding("stuck", f"is {row.status} at the end of time", row.id)
        for run_id in self.acknowledged - self.model.rows.keys():
            yield Finding("kept", "was acknowledged and is not there", run_id)
        for run_id in self.doubled:
            yield Finding("ends", "is in two tables", run_id)
        yield from self._overlaps()
        yield from self._misbeliefs()

    def _misbeliefs(self) -> Generator[Finding]:
        """What workers believe of their attempts and the log does not have, or has otherwise."""
        for run_id, attempt, letter in self.reported:
            kinds = _written(self.model, run_id, attempt)
            if letter is None and kinds:
                yield Finding("misreported", f"attempt {attempt} was settled, not lost", run_id)
            elif letter is not None and not (kinds if letter == ANY else KINDS[letter] in kinds):
                yield Finding("unwritten", f"attempt {attempt} was never settled so", run_id)

    def _overlaps(self) -> Generator[Finding]:
        by_run: dict[str, list[Belief]] = {}
        for belief in sorted(self.beliefs, key=lambda belief: belief.since):
            by_run.setdefault(belief.run, []).append(belief)
        for run_id, beliefs in by_run.items():
            for first, second in pairwise(beliefs):
                if second.since < first.until:
                    yield Finding("leases", f"{first} and {second}", run_id)


def _written(model: Model, run_id: str, attempt: int) -> set[str]:
    """How a holder has settled this attempt, by the log; a sweep does not set `said`."""
    told = model.rows[run_id].told if run_id in model.rows else []
    return {
        event.kind
        for event in told
        if event.attempt == attempt
        and (event.kind in {"Succeeded", "Released"} or "reported" in (event.data or {}))
    }


def _settled(model: Model, run: Leased) -> bool:
    return model.settled(run.id, run.token) or bool(_written(model, run.id, run.attempt))
