# SPDX-License-Identifier: MIT
"""Runs a command as a part of `byrote up`; it receives SIGTERM when `up` dies, even by SIGKILL."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Run the command after the first argument, which is the process id of `up`."""
    parent = int(sys.argv.pop(1))
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        # The parent died before the kernel had registered the signal.
        sys.exit(1)
    from byrote.cli.main import main as command  # noqa: PLC0415 -- after the kernel knows.

    command()


if __name__ == "__main__":
    main()
