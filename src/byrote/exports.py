# SPDX-License-Identifier: MIT
"""Names that a package exports without importing their modules.

Type checkers and editors read the imports below `TYPE_CHECKING`; `tests/tidy` compares the two.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(package: str, homes: Mapping[str, str]) -> tuple[list[str], Callable[[str], Any]]:
    """Return `__all__` and `__getattr__` of a package, from the names in each module."""
    module_of = {name: module for module, names in homes.items() for name in names.split()}

    def fetch(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(import_module(module_of[name]), name)
        except ModuleNotFoundError as error:
            from byrote.core.errors import missing_driver  # noqa: PLC0415 -- only when it fails.

            raise missing_driver(f"{package}.{name}", error) from None

    return sorted(module_of), fetch
