# SPDX-License-Identifier: MIT
"""Other processes that use an embedded server, and what there is to see of one."""

import os
import subprocess
import sys
from pathlib import Path

USER = """
import os, sys
from pathlib import Path
from byrote.embedded.server import open_server
server = open_server(Path(sys.argv[1]), environ=os.environ, durable=False)
print(server.pid, flush=True)
sys.stdin.readline()
server.close()
"""


class User:
    """Another process that uses the server until the test stops or kills it."""

    def __init__(self, home: Path, script: str = USER) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def joined(self) -> int:
        """Wait until it uses the server, and give the postmaster's pid."""
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())

    def leave(self) -> None:
        self.process.communicate("\n", timeout=60)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=60)


def postmasters(home: Path) -> list[int]:
    """The pids whose command line names this home's data directory."""
    found: dict[int, int] = {}
    # By `ps`, which macOS has too: these tests also run where there is no /proc.
    every = ["ps", "-axww", "-o", "pid=,ppid=,command="]
    for line in subprocess.run(every, capture_output=True, check=True).stdout.splitlines():
        pid, parent, *words = line.split()
        if os.fsencode(home / "data") in words and b"-k" in words:
            found[int(pid)] = int(parent)
    # A child has its parent's command line until it has given itself a title.
    return [pid for pid, parent in found.items() if parent not in found]
