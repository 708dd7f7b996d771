# SPDX-License-Identifier: MIT
"""Names of database schemas: which are accepted, and how SQL and libpq write them."""

from byrote.core.errors import BadOption

BYTES_MAX = 63
"""PostgreSQL truncates longer names silently."""
_WRITE = "Write a name such as 'byrote'; it is used exactly as written, capitals included"


def checked_schema(name: object) -> str:
    """Return the name of a schema; raises BadOption if it cannot be the home of Byrote's tables."""
    if not isinstance(name, str) or not name:
        raise BadOption(f"A schema is a name, not {name!r}. {_WRITE}.")
    if not name.isprintable():
        raise BadOption(f"The schema {name!r} has characters that cannot be printed. {_WRITE}.")
    size = len(name.encode(errors="replace"))
    if size > BYTES_MAX:
        raise BadOption(
            f"The schema {name!r} has {size} bytes; PostgreSQL allows {BYTES_MAX}. {_WRITE}."
        )
    if name.startswith("pg_") or name == "information_schema":
        raise BadOption(f"The schema {name!r} belongs to PostgreSQL itself. {_WRITE}.")
    if "$" in name or "byrote_home" in name:
        # "$user" is replaced in a search path, $$ ends the body of a function, and byrote_home is
        # what the migrations replace by the schema.
        raise BadOption(f"The schema {name!r} contains $ or 'byrote_home'. {_WRITE}.")
    return name


def quoted(name: str) -> str:
    """Return the name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def search_path(name: str) -> str:
    """Return the setting for libpq's `options` that makes the schema a session's search path."""
    escaped = "".join(
        f"\\{each}" if each == "\\" or each.isspace() else each for each in quoted(name)
    )
    return f"search_path={escaped}"
