# SPDX-License-Identifier: MIT
"""`python -m byrote.sdk module:handlers`: a worker of the service, set up by BYROTE_* alone.

For machines that have `byrote[client]` and no database driver. `--drain` ends it when nothing is
left to do; it then exits with 5 if runs were left that it could not execute.
"""

import sys

from byrote.core.errors import BadOption, ByroteError, Unreachable
from byrote.sdk.worker import Worker

USAGE = "usage: python -m byrote.sdk module:handlers [--drain]\n"


def main(arguments: list[str]) -> int:
    """Work until a signal stops it; returns the exit code."""
    named = [word for word in arguments if word != "--drain"]
    if len(named) != 1 or named[0].startswith("-"):
        sys.stderr.write(USAGE)
        return 2
    try:
        worker = Worker(named[0], drain=len(named) < len(arguments))
        worker.run()
    except ByroteError as error:
        sys.stderr.write(f"byrote: {error}\n")
        return 75 if isinstance(error, Unreachable) else 2 if isinstance(error, BadOption) else 1
    if worker.left is not None and worker.left.stuck:
        sys.stderr.write(f"byrote: Drained, but runs were left: {worker.left}.\n")
        return 5
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
