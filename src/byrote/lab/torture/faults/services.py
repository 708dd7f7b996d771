# SPDX-License-Identifier: MIT
"""Faults of the HTTP service: killed under its producers, who send again by the same key."""

import http.client
import signal
import socket
import threading
import time
from importlib.util import find_spec

import msgspec

from byrote.assembly.clock import monotonic
from byrote.assembly.identity import new_id, new_secret
from byrote.core.text.ids import token_digest
from byrote.embedded.control import free_port
from byrote.executors.runtime.seeding import Random
from byrote.lab.bench.stage import environment
from byrote.lab.torture.faults.processes import Shown
from byrote.lab.torture.stage import Process, TortureSetup
from byrote.store import queries
from byrote.store.runners.sync import fetch

RUNS = 30
KILLS = 3
PATIENCE_S = 40.0


def kill_service(stage: TortureSetup, dice: Random) -> Shown:
    """SIGKILL a service between and within requests; one key must stay one run."""
    if find_spec("uvicorn") is None:
        return None
    port, secret = free_port(), _token(stage)
    running = [_start(stage, port)]

    def replace() -> None:
        running[-1].signal(signal.SIGKILL)
        running[-1].wait(5.0)
        running.append(_start(stage, port))

    kills = sorted(dice.sample(range(2, RUNS), KILLS))
    ids, again = [], 0
    for number in range(RUNS):
        killer = threading.Timer(dice.uniform(0.0, 0.02), replace)
        if number in kills:
            killer.start()
        run_id, tries = _send(stage, port, secret, number)
        ids.append(run_id)
        again += tries - 1
        if number in kills:
            killer.join()
    running[-1].signal(signal.SIGKILL)
    stage.note("ok", ids=ids)
    _one_each(stage, secret, ids)
    codes = [service.wait(5.0) for service in running]
    return {"codes": codes, "runs": len(ids), "sent_again": again}


def _token(stage: TortureSetup) -> str:
    secret = new_secret()
    digest = token_digest(secret)
    made = queries.create_token(
        id=new_id(),
        digest=digest,
        name="torture",
        role="enqueue",
        queues=["*"],
        tasks=["*"],
        rate=100_000,
    )
    with stage.connect() as connection:
        fetch(connection, made)
    return secret


def _start(stage: TortureSetup, port: int) -> Process:
    url = stage.proxies[0].url(stage.url)
    words = ["byrote.cli.main", "serve", "--port", str(port), "--log-format", "json"]
    log = stage.folder / f"service-{port}.log"
    process = stage.spawn("service", words, log, environment(url, {}))
    stage.producers.append(process)  # Stopped with the others, also after an error here.
    deadline = monotonic() + PATIENCE_S
    while monotonic() < deadline and process.alive:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    return process


def _send(stage: TortureSetup, port: int, secret: str, number: int) -> tuple[str, int]:
    """Send one run until it is accepted, always with one key; returns its id and the tries."""
    key = f"torture-{secret[-12:]}-{number}"
    kwargs = {"folder": str(stage.history), "n": number}
    body = {"task": "torture.quick", "kwargs": kwargs, "labels": {"torture": secret[-12:]}}
    headers = {
        "authorization": f"Bearer {secret}",
        "content-type": "application/json",
        "idempotency-key": key,
    }
    tries, content, deadline = 0, b"", monotonic() + PATIENCE_S
    while True:
        tries += 1
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("POST", "/v1/runs", msgspec.json.encode(body), headers)
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            if answer.status < 300:
                return str(msgspec.json.decode(content)["id"]), tries
            if answer.status < 500 and answer.status not in {409, 429}:
                raise RuntimeError(f"the service refused a run: {answer.status} {content[:200]!r}")
        except (OSError, http.client.HTTPException):
            if monotonic() > deadline:
                raise
        if tries > 1:
            time.sleep(0.1)
        if monotonic() > deadline:
            raise OSError(f"the service did not come back: {content[:200]!r}")


def _one_each(stage: TortureSetup, secret: str, ids: list[str]) -> None:
    text = "select result_id::text from byrote_runs where labels ->> 'torture' = %s"
    with stage.connect() as connection:
        found = {row[0] for row in connection.execute(text, (secret[-12:],))}
    stage.note("keyed", twice=sorted(found - set(ids)))
