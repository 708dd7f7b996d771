# SPDX-License-Identifier: MIT
"""The main program of a hand: sets up the process, imports the app, and serves the supervisor."""

import asyncio
import faulthandler
import json
import os
import signal
import socket
import sys
from functools import partial
from pathlib import Path

from byrote.assembly.once import once
from byrote.core.errors import ByroteError
from byrote.executors.hands.child_loop import Hand, refuse
from byrote.executors.runtime.call import fault_of
from byrote.executors.runtime.loading import load_app
from byrote.executors.runtime.output import attempt_fields, capture_streams
from byrote.executors.runtime.provenance.git import GitCheckout
from byrote.executors.runtime.seeding import install
from byrote.executors.shared.spool import Spool
from byrote.observe.logs import set_up_logging
from byrote.system.processes import die_with_parent


def main() -> None:
    """Serve the supervisor that started this process until it sends `stop`."""
    settings = json.loads(sys.argv[1])
    if not die_with_parent(settings["supervisor"]):
        os._exit(0)
    # Ctrl-C reaches the terminal's whole process group; the supervisor decides when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    faulthandler.enable()
    if settings["replay"]:
        # The replaying command prints verdicts to stdout; redirect ours to stderr.
        os.dup2(2, 1)
    sys.setswitchinterval(0.001)
    # Before logging, which keeps a reference to stderr: log lines are part of a task's output.
    capture_streams(Spool(settings["spool"]))
    set_up_logging(settings["log_format"], settings["log_level"], attempt_fields)
    link = socket.socket(fileno=settings["link"])
    checkout = GitCheckout(Path.cwd())
    if settings["deterministic"]:
        # Before the app, which may import names from `random`.
        install()
    try:
        app = load_app(settings["app"])
    except ByroteError as error:
        refuse(link, str(error))
    except Exception as error:  # noqa: BLE001 -- the app's module may raise anything; report it.
        reason = f"Importing {settings['app']} raised {type(error).__name__}: {error}"
        refuse(link, reason, fault_of(error).traceback or "")
    if settings["deterministic"]:
        install(task.key for task in app.registry.served if not task.deterministic)
    if settings["replay"]:
        _discard_output()
    mark = partial(once, schema=settings["schema"] or app.schema)
    asyncio.run(Hand(link, app, settings, checkout=checkout, once=mark).serve())
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads stuck in a task must not keep the process alive after `stop`.
    os._exit(0)


def _discard_output() -> None:
    """Redirect stdout and stderr to /dev/null; tasks' output is still stored with their runs."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)


if __name__ == "__main__":
    main()
