# SPDX-License-Identifier: MIT
"""Reads the annotations of a task's function, one by one.

A name that cannot be resolved, such as one imported under TYPE_CHECKING, affects only its own
parameter.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, get_type_hints

PLAIN: Final = frozenset(
    {inspect.Parameter.empty, Any, None, type(None), bool, int, float, str, list, dict, object}
)
"""Annotations of values that are sent as they are."""

_NOT_A_TYPE = (SyntaxError, AttributeError, TypeError, ValueError, KeyError, ImportError)
"""The errors of evaluating the text of an annotation, besides NameError."""


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Returns the signature; names that cannot be resolved stay as they are written."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format  # noqa: PLC0415

        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)


def hint_of(annotation: Any, names: Mapping[str, Any]) -> Any:
    """Returns the type that an annotation means, Any if it is not one. Raises NameError."""

    def bearer() -> None:
        """Carries the annotation."""

    bearer.__annotations__ = {"hint": annotation}
    try:
        return get_type_hints(bearer, globalns=dict(names), include_extras=True)["hint"]
    except _NOT_A_TYPE:
        return Any
