# SPDX-License-Identifier: MIT
"""Removes passwords from text that may be shown: errors, logs, settings."""

import re
from typing import Final

HIDDEN: Final = "***"
EXAMPLE: Final = "postgresql://user:password@host:5432/database"

# To the last @ of the line: a password that was not percent-encoded may hold any character, also
# another @ and a space. A port is not a password: digits up to the end of the authority. Neither is
# the one in EXAMPLE, which our own messages show.
_IN_AUTHORITY: Final = re.compile(
    r"(?P<before>[A-Za-z][A-Za-z0-9+.-]*://[^:/?#@\s\[]*:)"
    r"(?!password@host:5432/database|\d{1,5}(?:[/?#\s,;.)'\"`]|$))[^\n]*@"
)
_AS_PARAMETER: Final = re.compile(
    r"(?P<before>\b(?:ssl)?password\s*=\s*)(?:'(?:\\.|[^'\\])*'?|[^\s&'][^\s&]*)", re.IGNORECASE
)


def redacted(text: str) -> str:
    """The text with the passwords of URLs and of connection strings replaced by stars."""
    if "://" in text:
        text = _IN_AUTHORITY.sub(rf"\g<before>{HIDDEN}@", text)
    if "assword" in text or "ASSWORD" in text:
        text = _AS_PARAMETER.sub(rf"\g<before>{HIDDEN}", text)
    return text
