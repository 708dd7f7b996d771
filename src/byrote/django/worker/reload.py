# SPDX-License-Identifier: MIT
"""The files whose changes restart a Django worker; `cli/support/reload.py` restarts it.

Django's own reloader would run the worker in a thread and kill the process.
"""

from collections.abc import Iterator
from pathlib import Path

from django.apps import apps
from django.utils.autoreload import iter_all_python_module_files


def watched() -> Iterator[Path]:
    """Files of all loaded modules, and of all modules of the project's own apps."""
    yield from iter_all_python_module_files()
    for config in apps.get_app_configs():
        if "site-packages" not in config.path:
            yield from Path(config.path).rglob("*.py")
