# SPDX-License-Identifier: MIT
from byrote.assembly.identity import new_secret
from tests.cli.console import byrote


def test_a_token_is_shown_once_and_listed_by_what_it_may_do(url: str) -> None:
    made = byrote("token", "create", "mailer", "--role", "work", "--queue", "mail", url=url)
    secret = made.out.strip()
    listed = byrote("token", "list", "--json", url=url)
    [row] = listed.objects

    assert secret.startswith("byr_")
    assert "not shown again" in made.err
    assert secret not in listed.out
    assert (row["name"], row["role"], row["queues"], row["tasks"]) == (
        "mailer", "work", ["mail"], ["*"],
    )  # fmt: skip
    assert "mailer" in byrote("token", url=url).out


def test_a_secret_has_256_bits() -> None:
    assert len({new_secret() for _ in range(100)}) == 100
    assert len(new_secret()) == len("byr_") + 43


def test_a_revoked_token_is_shown_as_revoked(url: str) -> None:
    byrote("token", "create", "a", "--role", "read", url=url)
    said = byrote("token", "revoke", "a", url=url)

    assert said.code == 0
    assert byrote("token", "list", "--json", url=url).object["revoked_at"] is not None
    assert byrote("token", "revoke", "a", url=url).code == 1


def test_a_rotated_token_leaves_the_old_one_for_a_while(url: str) -> None:
    byrote("token", "create", "a", "--role", "enqueue", "--task", "t", url=url)
    new = byrote("token", "rotate", "a", "--overlap", "1h", "--json", url=url).object
    fresh, old = byrote("token", "list", "--json", url=url).objects

    assert (fresh["id"], fresh["role"], fresh["tasks"]) == (new["id"], "enqueue", ["t"])
    assert fresh["holder"] == old["id"]
    assert (fresh["expires_at"], old["expires_at"] is None) == (None, False)


def test_a_name_or_a_scope_that_is_none_is_refused(url: str) -> None:
    assert byrote("token", "create", "a b", "--role", "read", url=url).code == 2
    assert byrote("token", "create", "a", "--role", "root", url=url).code == 2
    assert byrote("token", "create", "a", "--role", "read", "--queue", "*", url=url).code == 2
