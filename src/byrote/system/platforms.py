# SPDX-License-Identifier: MIT
"""What kind of system this is: native Windows has neither our workers nor a user id."""

import os
import sys


def is_windows() -> bool:
    """Whether this is native Windows; WSL is Linux."""
    # Not compared in place: mypy would take the code below for unreachable.
    platform: str = sys.platform
    return platform == "win32"


def is_root() -> bool:
    """Whether this process has root's rights; False on Windows, which has no root."""
    return not is_windows() and os.geteuid() == 0
