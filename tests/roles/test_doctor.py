# SPDX-License-Identifier: MIT
"""`byrote doctor` names what a login can do, and the role that it lacks for the rest."""

from typing import Any

import pytest

from tests.cli.console import byrote
from tests.roles.conftest import Logins
from tests.support import Db

CAN = {
    "enqueue": "can enqueue; cannot enqueue tasks with a memo (needs byrote_worker), work (needs"
    " byrote_worker), serve (needs byrote_service), make tokens (needs byrote_owner), read (needs"
    " byrote_read)",
    "worker": "can enqueue, enqueue tasks with a memo, work, read; cannot serve (needs"
    " byrote_service),",
    "read": "can read; cannot enqueue (needs byrote_enqueue),",
    "service": "can enqueue, enqueue tasks with a memo, work, serve, read; cannot make tokens",
}


def rights_of(url: str) -> dict[str, Any]:
    told = byrote("doctor", "--json", url=url).object["checks"]
    [found] = [check for check in told if check["name"] == "rights"]
    return dict(found)


@pytest.mark.parametrize("role", CAN)
def test_a_login_is_shown_what_it_can_do(logins: Logins, role: str) -> None:
    found = rights_of(logins(role))

    assert found["state"] == "ok"
    assert CAN[role] in found["message"]


def test_the_owner_of_the_tables_can_do_everything(installed: str) -> None:
    assert "cannot" not in rights_of(installed)["message"]


def test_roles_that_are_older_than_the_tables_are_found(logins: Logins, owner: Db) -> None:
    owner.execute("revoke select on byrote_retention from byrote_worker")
    found = rights_of(logins("worker"))
    owner.execute("grant select on byrote_retention to byrote_worker")

    assert found["state"] == "fail"
    assert "byrote_worker: permission denied for table byrote_retention" in found["message"]
    assert "run `byrote roles --sql` again" in found["advice"]


def test_a_login_without_any_role_gets_an_error_that_names_one(
    installed: str, owner: Db, logins: Logins
) -> None:
    """It may not even read which schema there is."""
    owner.execute("create role byrote_login_nothing login")
    url = f"{installed} user=byrote_login_nothing"
    said = byrote("doctor", url=url)
    owner.execute("drop role byrote_login_nothing")

    assert said.code == 3
    assert "byrote roles --sql" in said.out
