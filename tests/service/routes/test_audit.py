# SPDX-License-Identifier: MIT
"""The audit has what was done and nothing else: every route that writes, refused and done."""

from collections.abc import Callable, Mapping
from typing import Any

import httpx2

from byrote.core.json.codec import digest_of
from byrote.service.routes.table import ENDPOINTS
from byrote.store import queries
from byrote.store.queries.tokens import Audited
from tests.service.harness import Served, claim_one, enqueue_one, finish_one

ABSENT = "0190b0a0-1111-7222-8333-444455556666"

UNNOTED = frozenset(
    {
        "POST /v1/leases/renew",
        "POST /v1/leases/ledgers",
        "POST /v1/leases/progress",
        "PUT /v1/leases/{token}/progress",
        "POST /v1/leases/unfinished",
        "POST /v1/workers/{worker}/heartbeat",
    }
)
"""Routes that change nothing, or only what the access log is enough for, as documented."""

type Asked = tuple[str, dict[str, Any]]
"""A path, and how to ask it."""


class Scene:
    """Runs in every state, made anew for each route."""

    def __init__(self, client: httpx2.Client) -> None:
        self.client = client
        self.lease = self._leased()
        self.ended = self._leased()["run"]
        self.dead = self._leased()
        finish_one(client, self._lease_of(self.ended), result=1)
        finish_one(client, self.dead, error={"type": "Oops", "fatal": True})
        self.ready = enqueue_one(client, "later")
        self.waiting = enqueue_one(client, "later", run_after="1h")

    def _leased(self) -> dict[str, Any]:
        enqueue_one(self.client)
        self._last = claim_one(self.client, lease_for_s=600)
        self._leases = {**getattr(self, "_leases", {}), self._last["run"]: self._last}
        return self._last

    def _lease_of(self, run: str) -> dict[str, Any]:
        return dict(self._leases[run])

    def held(self, **more: Any) -> dict[str, Any]:
        return {"run": self.lease["run"], "token": self.lease["token"], **more}

    def unheld(self, **more: Any) -> dict[str, Any]:
        return {"run": self.lease["run"], "token": ABSENT, **more}


class Route:
    """How a route is asked so that it does something, and how so that it does not."""

    def __init__(
        self, action: str, done: Callable[[Scene], Asked], *refused: Callable[[Scene], Asked]
    ) -> None:
        self.action = action
        self.done = done
        self.refused = refused


def of_run(verb: str, run: Callable[[Scene], str], **body: Any) -> Callable[[Scene], Asked]:
    return lambda scene: (f"/v1/runs/{run(scene)}/{verb}", {"json": body} if body else {})


def ids(path: str, *runs: Callable[[Scene], str]) -> Callable[[Scene], Asked]:
    return lambda scene: (path, {"json": {"runs": [run(scene) for run in runs]}})


def sent(path: str, body: Callable[[Scene], Any]) -> Callable[[Scene], Asked]:
    return lambda scene: (path, {"json": body(scene)})


def upload(token: Callable[[Scene], str], **query: Any) -> Callable[[Scene], Asked]:
    def asked(scene: Scene) -> Asked:
        params = {"run": scene.lease["run"], "name": "up.txt", **query}
        return f"/v1/leases/{token(scene)}/artifacts", {"params": params, "content": b"hello"}

    return asked


def absent(_scene: Scene) -> str:
    return ABSENT


def ended(scene: Scene) -> str:
    return str(scene.ended)


def ready(scene: Scene) -> str:
    return scene.ready


def waiting(scene: Scene) -> str:
    return scene.waiting


def dead(scene: Scene) -> str:
    return str(scene.dead["run"])


def alive(scene: Scene) -> str:
    return str(scene.lease["run"])


STEP = {"sequence": 1, "kind": "step", "name": "s", "result": 1}
FILE = {"name": "a.txt", "data": "aGVsbG8="}
WORKER = {"worker": "w7", "queues": ["default"], "tasks": ["hello@1"]}
DOC = {"python": "3.14"}
DIGEST = digest_of(b'{"python":"3.14"}').hex()

ROUTES: Mapping[str, Route] = {
    "POST /v1/runs": Route(
        "enqueue",
        sent("/v1/runs", lambda _s: {"task": "t"}),
        sent("/v1/runs", lambda _s: [{"task": "t"}, {"task": "t", "args": 3}]),
        sent("/v1/runs", lambda _s: {"task": "t", "priority": 1000}),
    ),
    "POST /v1/runs/cancel": Route(
        "cancel",
        ids("/v1/runs/cancel", ready, ended),
        ids("/v1/runs/cancel", absent, ended, dead),
    ),
    "POST /v1/runs/retry": Route(
        "retry", ids("/v1/runs/retry", dead, waiting), ids("/v1/runs/retry", absent, ended, alive)
    ),
    "POST /v1/runs/{id}/cancel": Route(
        "cancel", of_run("cancel", ready), of_run("cancel", ended), of_run("cancel", absent)
    ),
    "POST /v1/runs/{id}/retry": Route(
        "retry", of_run("retry", waiting), of_run("retry", ended), of_run("retry", absent)
    ),
    "POST /v1/runs/{id}/replay": Route("replay", of_run("replay", ended), of_run("replay", absent)),
    "POST /v1/runs/{id}/signal": Route(
        "signal",
        of_run("signal", alive, event="go"),
        of_run("signal", ended, event="go"),
        of_run("signal", absent, event="go"),
    ),
    "POST /v1/leases": Route(
        "claim",
        sent("/v1/leases", lambda _s: {"worker": "w", "tasks": ["later@1"]}),
        sent("/v1/leases", lambda _s: {"worker": "w", "tasks": ["nothing@1"]}),
    ),
    "POST /v1/leases/finish": Route(
        "finish",
        sent("/v1/leases/finish", lambda s: [s.held(result=1)]),
        sent("/v1/leases/finish", lambda s: [s.unheld(result=1)]),
        sent("/v1/leases/finish", lambda _s: {"run": ABSENT, "token": ABSENT, "result": 1}),
        sent("/v1/leases/finish", lambda s: s.held(result=1, cancelled=True)),
    ),
    "POST /v1/leases/release": Route(
        "release",
        sent("/v1/leases/release", lambda s: {"leases": [s.held()]}),
        sent("/v1/leases/release", lambda s: {"leases": [s.unheld()]}),
    ),
    "POST /v1/leases/steps": Route(
        "step",
        sent("/v1/leases/steps", lambda s: {"steps": [s.held(**STEP)]}),
        sent("/v1/leases/steps", lambda s: {"steps": [s.unheld(**STEP)]}),
    ),
    "POST /v1/leases/artifacts": Route(
        "artifact",
        sent("/v1/leases/artifacts", lambda s: s.held(**FILE)),
        sent("/v1/leases/artifacts", lambda s: s.unheld(**FILE)),
    ),
    "PUT /v1/leases/{token}/artifacts": Route(
        "artifact",
        upload(lambda s: str(s.lease["token"])),
        upload(absent),
        upload(lambda s: str(s.lease["token"]), sha256="0" * 64),
    ),
    "POST /v1/provenance": Route(
        "provenance",
        sent("/v1/provenance", lambda _s: {"digest": DIGEST, "doc": DOC}),
        sent("/v1/provenance", lambda _s: {"digest": "0" * 64, "doc": DOC}),
    ),
    "POST /v1/workers": Route(
        "register",
        sent("/v1/workers", lambda _s: WORKER),
        sent("/v1/workers", lambda _s: {**WORKER, "queues": []}),
    ),
    "DELETE /v1/workers/{worker}": Route(
        "deregister", lambda _s: ("/v1/workers/w7", {}), lambda _s: ("/v1/workers/other", {})
    ),
    "POST /v1/dead/requeue": Route(
        "requeue",
        ids("/v1/dead/requeue", dead, absent),
        ids("/v1/dead/requeue", absent, ended, alive),
    ),
    "POST /v1/dead/delete": Route(
        "delete", ids("/v1/dead/delete", dead, absent), ids("/v1/dead/delete", absent, alive)
    ),
    "POST /v1/queues/{name}/pause": Route(
        "pause", lambda _s: ("/v1/queues/q/pause", {}), lambda _s: ("/v1/queues/_%20/pause", {})
    ),
    "POST /v1/queues/{name}/unserved": Route(
        "unserved",
        lambda _s: ("/v1/queues/q/unserved", {"json": {"after": "2h"}}),
        lambda _s: ("/v1/queues/q/unserved", {"json": {"after": "soon"}}),
    ),
    "POST /v1/queues/{name}/purge": Route(
        "cancel",
        sent("/v1/queues/default/purge", lambda _s: {}),
        sent("/v1/queues/default/purge", lambda _s: {"dry_run": True}),
        sent("/v1/queues/nope/purge", lambda _s: {}),
    ),
    "POST /v1/queues/{name}/retention": Route(
        "set_retention",
        sent("/v1/queues/default/retention", lambda _s: {"keep_done": "7d"}),
        sent("/v1/queues/default/retention", lambda _s: {"keep_done": "1s"}),
        sent("/v1/queues/nope/retention", lambda _s: {"keep_done": "7d"}),
    ),
    "POST /v1/queues/{name}/resume": Route(
        "resume", lambda _s: ("/v1/queues/q/resume", {}), lambda _s: ("/v1/queues/open/resume", {})
    ),
}
ONCE = frozenset({"enqueue", "replay", "signal", "claim", "register"})
"""Actions that do something each time they are asked for; any other is done once."""


def test_the_audit_has_what_was_done_and_nothing_else(served: Served, admin: httpx2.Client) -> None:
    writing = {f"{e.method} {e.path}" for e in ENDPOINTS if e.method != "GET"}
    assert writing == set(ROUTES) | UNNOTED

    for name, route in ROUTES.items():
        scene, method = Scene(admin), name.partition(" ")[0]
        for refused in route.refused:
            assert _told(served, admin, method, refused(scene)) == [], name
        asked = route.done(scene)
        [entry] = _told(served, admin, method, asked)
        assert entry.action == route.action
        assert ABSENT not in (entry.runs or ()), name
        assert scene.ended not in (entry.runs or ()) or route.action == "replay", name
        if route.action not in ONCE:
            assert _told(served, admin, method, asked) == [], name


def _told(served: Served, client: httpx2.Client, method: str, asked: Asked) -> list[Audited]:
    """The entries that a request has added."""
    before = len(served.store.all(queries.audits(limit=10_000)))
    path, more = asked
    answer = client.request(method, path, **more)
    assert answer.status_code < 500, answer.text
    after = served.store.all(queries.audits(limit=10_000))
    return after[: len(after) - before]
