# SPDX-License-Identifier: MIT
"""Text that cannot move a terminal's cursor, ring its bell or begin a line of a log.

Whatever comes from a database, a request or a task goes through here before it is written for
people; what is escaped is shown as Python would write it.
"""

import re

_IN_JSON = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text with all but its line breaks and tabs escaped that is not printable."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode()
        for char in text
    )


def one_line(text: str) -> str:
    """The text on one line: line breaks and tabs are escaped, too."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def json_printable(text: str) -> str:
    """JSON text with the same meaning: JSON itself leaves some control characters as they are."""
    if text.isascii() and "\x7f" not in text:
        return text
    return _IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
