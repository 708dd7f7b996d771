# SPDX-License-Identifier: MIT
import psycopg
import pytest
from psycopg.errors import lookup

from byrote.assembly.identity import jitter
from byrote.store.connect import DatabaseAddress
from byrote.store.retries import BACKOFF_MAX, RECONNECTED, RETRIED, Remedy, pause_before, remedy
from tests.support import Db

EXPECTED = {
    Remedy.RETRY: ["40001", "40P01", "55P03", "57014", "53100", "53200", "53400"],
    Remedy.RECONNECT: [
        *["57P01", "57P02", "57P03", "57P05", "53300", "25P02", "25P03", "25006"],
        *["08000", "08001", "08003", "08004", "08006", "08007", "08P01"],
    ],
    Remedy.RAISE: ["23505", "23514", "42P01", "42601", "22P02", "22021", "28P01", "3D000", "XX000"],
}
TABLE = [(code, what) for what, codes in EXPECTED.items() for code in codes]


def of_code(code: str) -> psycopg.Error:
    try:
        kind = lookup(code)
    except KeyError:
        kind = type("Unheard", (psycopg.OperationalError,), {"sqlstate": code})
    return kind("for a test")


@pytest.mark.parametrize(("code", "what"), TABLE)
def test_every_sqlstate_has_its_remedy(code: str, what: Remedy) -> None:
    assert remedy(of_code(code)) is what


def test_the_table_here_is_the_table_there() -> None:
    """A code added there without a decision here, or the other way round, fails."""
    here = {code for code, what in TABLE if what is not Remedy.RAISE and not code.startswith("08")}

    assert here == RETRIED | RECONNECTED


@pytest.mark.parametrize("kind", [psycopg.OperationalError, psycopg.InterfaceError])
def test_a_broken_connection_without_a_code_is_opened_again(kind: type[psycopg.Error]) -> None:
    assert remedy(kind("server closed the connection unexpectedly")) is Remedy.RECONNECT


def test_a_mistake_of_ours_without_a_code_is_raised() -> None:
    assert remedy(psycopg.ProgrammingError("no such parameter")) is Remedy.RAISE


def test_real_errors_of_the_server_are_classified(db: Db, address: DatabaseAddress) -> None:
    with address.open("victim") as victim:
        db.execute("select pg_terminate_backend(%s, 5000)", (victim.info.backend_pid,))
        with pytest.raises(psycopg.Error) as ended:
            victim.execute("select 1")
        with pytest.raises(psycopg.Error) as closed:
            victim.execute("select 1")
    with (
        address.open("slow", "statement_timeout=10ms") as slow,
        pytest.raises(psycopg.Error) as late,
    ):
        slow.execute("select pg_sleep(5)")

    assert remedy(ended.value) is remedy(closed.value) is Remedy.RECONNECT
    assert remedy(late.value) is Remedy.RETRY


def test_a_server_that_is_not_there_is_asked_again() -> None:
    nobody = DatabaseAddress("postgresql://127.0.0.1:1/none")
    with pytest.raises(psycopg.Error) as refused:
        nobody.open("test")

    assert remedy(refused.value) is Remedy.RECONNECT


def test_pauses_grow_to_a_bound_and_are_drawn_in_full() -> None:
    longest = [pause_before(n, lambda: 1.0) for n in range(2, 100)]

    assert longest == sorted(longest)
    assert longest[0] < 0.1
    assert longest[-1] == BACKOFF_MAX
    assert pause_before(50, lambda: 0.0) == 0.0
    assert 0.0 <= pause_before(10**9, jitter) <= BACKOFF_MAX
