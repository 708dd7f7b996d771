# SPDX-License-Identifier: MIT
"""Byrote with its fence torn out: a finish and a renewal are believed by the run's id alone.

That is how most queues do it. It exists to show that the verifier notices; it is not part of the
package that is installed.
"""

from functools import cache

from byrote.core.text.schema_name import quoted
from byrote.store import query
from byrote.store.qualified import qualified

FENCE = (
    b"and run.lease_token = sent.token",
    b"and run.lease_token = held.token",
    b"and run.leased_until > (select now from clock)",
)
UNFENCED = frozenset({"finish", "renew", "succeed"})

_whole = query.statement


@cache
def unfenced(name: str, schema: str | None = None) -> bytes:
    """The statement's text, without what makes it refuse a stranger, with its names in a schema."""
    if schema is not None:
        # Not by `_whole`: it would remember the text without its fence after a test has ended.
        return qualified(unfenced(name), quoted(schema).replace("%", "%%").encode())
    text = _whole(name)
    if name not in UNFENCED:
        return text
    assert any(line in text for line in FENCE), f"{name}.sql has no fence to tear out"
    for line in FENCE:
        text = text.replace(line, b"")
    return text


def tear_out() -> None:
    """From now on this process works without a fence."""
    query.statement = unfenced  # type: ignore[assignment]
