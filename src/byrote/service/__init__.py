# SPDX-License-Identifier: MIT
"""The HTTP service. `byrote.service:app` is its ASGI app, as set in files and the environment."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Build `app` when a server asks for it: only assembly has clocks, randomness and settings."""
    if name != "app":
        raise AttributeError(name)
    app = globals()["app"] = import_module("byrote.assembly.service").service_app()
    return app
