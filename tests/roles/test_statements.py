# SPDX-License-Identifier: MIT
"""Every statement has a role that may run it, and every role may run all of its statements."""

import re
from collections.abc import Callable

import pytest

from byrote.store import rights
from byrote.store.query import statement
from tests.support import Db

ORDER = ("byrote_enqueue", "byrote_worker", "byrote_service", "byrote_owner")


@pytest.mark.parametrize("index", range(len(ORDER)))
def test_a_role_may_run_what_is_given_to_it_and_to_those_before(
    login: Callable[[str], Db], index: int
) -> None:
    names = tuple(name for name, role in rights.LEAST.items() if role in ORDER[: index + 1])

    assert dict(rights.refusals(login(ORDER[index].removeprefix("byrote_")), names)) == {}


@pytest.mark.parametrize("index", range(len(ORDER)))
def test_no_role_may_run_what_is_given_to_those_after(
    login: Callable[[str], Db], index: int
) -> None:
    names = tuple(name for name, role in rights.LEAST.items() if role in ORDER[index + 1 :])
    refused = dict(rights.refusals(login(ORDER[index].removeprefix("byrote_")), names))

    assert set(names) == set(refused)


def test_a_reader_may_run_what_is_listed_for_it_and_nothing_that_writes(
    login: Callable[[str], Db],
) -> None:
    refused = dict(rights.refusals(login("read"), tuple(rights.LEAST)))
    writes = {
        name
        for name in rights.LEAST
        if re.search(rb"\b(insert into|update byrote|delete from|byrote_make)", statement(name))
    }

    assert {name: refused[name] for name in rights.READ if name in refused} == {}
    assert writes < refused.keys()
