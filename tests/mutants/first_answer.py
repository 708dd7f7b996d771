# SPDX-License-Identifier: MIT
"""Byrote that believes the first result of an answer and drops an error that follows it.

A statement whose commit fails answers with its rows first. It exists to show that the torture
notices; it is not part of the package that is installed.
"""

import psycopg
from psycopg import generators, pq, waiting

from byrote.store.runners import prepared


def first_answer(wire: pq.abc.PGconn, _poll: object = None) -> pq.abc.PGresult:
    """The first result; raises only if that one is an error."""
    first = waiting.wait(generators.execute(wire), wire.socket)[0]
    if first.status == pq.ExecStatus.FATAL_ERROR:
        raise psycopg.errors.error_from_result(first)
    return first


def believe_it() -> None:
    """From now on this process takes rows for a commit."""
    prepared._answer = first_answer
