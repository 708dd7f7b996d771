# SPDX-License-Identifier: MIT
"""Runs a command as a part of `byrote up`; it receives SIGTERM when `up` dies, even by SIGKILL."""

import signal
import sys

from byrote.system.processes import die_with_parent


def main() -> None:
    """Run the command after the first argument, which is the process id of `up`."""
    parent = int(sys.argv.pop(1))
    if not die_with_parent(parent, signal.SIGTERM):
        # The parent died before the kernel had registered the signal.
        sys.exit(1)
    from byrote.cli.main import main as command  # noqa: PLC0415 -- after the kernel knows.

    command()


if __name__ == "__main__":
    main()
