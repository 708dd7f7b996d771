# SPDX-License-Identifier: MIT
"""Text that cannot move a terminal's cursor, ring its bell or begin a line of a log.

Text from a database, a request or a task is escaped here, as Python would escape it, before it is
written for people.
"""

import re

_IN_JSON = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Returns the text with unprintable characters escaped, except line breaks and tabs."""
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
