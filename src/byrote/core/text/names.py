# SPDX-License-Identifier: MIT
"""The default names of tasks: module and function, as `shop.tasks.send_email`.

A script is its own `__main__` while a worker imports it by its name, so the functions of `__main__`
are named after the module that the worker imports.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

MAIN = frozenset({"__main__", "__mp_main__"})
"""The module that Python was started with, also in processes of `multiprocessing`."""


def task_name(function: Callable[..., Any]) -> str:
    """Return the default name of a task: its module and its function.

    In a notebook or an interactive session, whose `__main__` has no file: the function alone.
    """
    module = str(getattr(function, "__module__", None) or "")
    if module in MAIN:
        module = _main_name(module)
    return f"{module}.{function.__name__}" if module else function.__name__


def bare_name(name: str) -> str:
    """Return the last part of a task's name: the function's, if the name is a default one."""
    return name.rpartition(".")[2]


def _main_name(module: str) -> str:
    """Return the name by which a worker imports the module that Python was started with."""
    main = sys.modules.get(module)
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name not in MAIN:
        return str(spec.name)
    file = getattr(main, "__file__", None)
    if not file or not Path(file).stem.isidentifier():
        return ""
    path = Path(file).absolute()
    parts = [path.stem]
    for folder in path.parents:
        if not (folder / "__init__.py").is_file():
            break
        parts.insert(0, folder.name)
    return ".".join(parts)
