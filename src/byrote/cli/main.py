# SPDX-License-Identifier: MIT
"""The command `byrote`. Prints `--version` before any slow import."""

import signal
import sys
from pathlib import Path
from types import FrameType

NO_WINDOWS = (
    "Byrote's commands and workers run on Linux and macOS, not on native Windows. "
    "Run them in WSL: https://learn.microsoft.com/windows/wsl/install"
)
TERMINATED = 128 + signal.SIGTERM


def main() -> None:
    """Run the command line of this process, and end it with an exit code."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"byrote {installed_version()}\n")
        return
    if sys.platform == "win32":
        sys.exit(NO_WINDOWS)
    # Turn SIGTERM into SystemExit so that context managers release the embedded server.
    signal.signal(signal.SIGTERM, _leave)
    from byrote.cli.root import root  # noqa: PLC0415 -- `--version` must not wait for it.

    root.main(prog_name="byrote")


def installed_version() -> str:
    """The version that is installed, read from the name of its metadata folder.

    Importing importlib.metadata would take longer than everything else that `--version` does.
    """
    for folder in map(Path, sys.path):
        for found in folder.glob("byrote-*.dist-info") if folder.is_dir() else ():
            return found.name.removeprefix("byrote-").removesuffix(".dist-info")
    from importlib.metadata import version  # noqa: PLC0415 -- the slow way, for unusual homes.

    return version("byrote")


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(TERMINATED)


if __name__ == "__main__":
    main()
