# SPDX-License-Identifier: MIT
"""A worker as a separate process; its one argument is JSON: app, drain and settings."""

import json
import signal
import sys
from types import FrameType

from byrote.assembly.clock import now
from byrote.assembly.settings import resolve
from byrote.assembly.worker import build_worker
from byrote.core.errors import BadOption, DatabaseUnreachable
from byrote.executors.runtime.output import attempt_fields
from byrote.observe.logs import LogWriter, set_up_logging
from byrote.worker.worker import Worker

EXITS = {BadOption: 2, DatabaseUnreachable: 75}


def main() -> int:
    asked = json.loads(sys.argv[1])
    set_up_logging("json", "info", attempt_fields)
    log = LogWriter(sys.stderr, form="json", level="info", now=now)
    try:
        settings = resolve(asked["settings"]).settings
        worker = build_worker(asked["app"], settings, emit=log, drain=asked["drain"])
        _obey(worker)
        worker.run()
    except (BadOption, DatabaseUnreachable) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return EXITS[type(error)]
    return 0


def _obey(worker: Worker) -> None:
    def stop(number: int, _frame: FrameType | None) -> None:
        worker.stop(signal.Signals(number).name)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


if __name__ == "__main__":
    sys.exit(main())
