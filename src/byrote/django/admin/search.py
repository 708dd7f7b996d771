# SPDX-License-Identifier: MIT
"""The search box: finds a run by its id, runs by the hash of their spec, or runs of a task."""

import re
from typing import Any
from uuid import UUID

from byrote.core.errors import BadOption
from byrote.core.spec import check_name

HELP = "Search for a run's id, a spec's hash (at least six characters of either), or a task's path."
DIGITS_MIN = 6
ID_DIGITS, HASH_DIGITS = 32, 64
_HEX = re.compile(r"[0-9a-f]+")


def find(queryset: Any, words: str) -> Any | None:
    """The runs that match; None if the words are neither an id, a hash nor a path."""
    words = words.strip()
    digits = words.lower().replace("-", "")
    if _HEX.fullmatch(digits) and DIGITS_MIN <= len(digits) <= HASH_DIGITS:
        return _by_digits(queryset, digits)
    return queryset.filter(task_path=words) if _is_name(words) else None


def _by_digits(queryset: Any, digits: str) -> Any:
    if len(digits) == ID_DIGITS:
        return queryset.filter(result_id=UUID(digits))
    if len(digits) < ID_DIGITS:
        first, last = (UUID(digits.ljust(ID_DIGITS, filler)) for filler in "0f")
        by_id = queryset.filter(result_id__gte=first, result_id__lte=last)
        if by_id.exists():
            return by_id
    low, high = (bytes.fromhex(digits.ljust(HASH_DIGITS, filler)) for filler in "0f")
    return queryset.filter(spec_hash__gte=low, spec_hash__lte=high)


def _is_name(words: str) -> bool:
    try:
        check_name("task", words)
    except BadOption:
        return False
    return True
