# SPDX-License-Identifier: MIT
"""Executes tasks as processes. Every worker imports this package, so it refuses Windows for all."""

from byrote.core.errors import UnsupportedSystem
from byrote.system.platforms import is_windows

if is_windows():
    # Here, because the modules below would raise a ModuleNotFoundError for `fcntl`.
    raise UnsupportedSystem("Byrote's workers run")
