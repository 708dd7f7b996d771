# SPDX-License-Identifier: MIT
"""Keeps Alembic's autogenerate away from Byrote's tables, which `byrote migrate` maintains."""

from typing import Any

PREFIX = "byrote_"


def include_object(  # noqa: PLR0917 -- the signature that Alembic calls.
    object_: Any,
    name: str | None,
    type_: str,
    reflected: bool,
    compare_to: Any,
) -> bool:
    """Return False for Byrote's tables and all that belongs to them.

    For `context.configure(include_object=…)`. A table of your own models is always included,
    whatever its name.
    """
    del compare_to
    if not reflected:
        return True
    owner = name if type_ == "table" else getattr(getattr(object_, "table", None), "name", None)
    return not (owner or "").startswith(PREFIX)
