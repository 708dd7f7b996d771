# SPDX-License-Identifier: MIT
from byrote.core.json.codec import pack
from tests.cli.console import byrote
from tests.store.runs.test_signal import park
from tests.store.steps.test_step import leased, line, note, wait
from tests.support import Db, count, enqueue, finish, success

NEVER = "01932c4e-8d5b-7a90-b1c2-3d4e5f607182"


def test_a_signal_is_sent_with_its_payload_as_written(url: str, db: Db) -> None:
    lease = leased(db)
    note(db, wait(lease, 1, "event", "paid"))
    park(db, lease)
    said = byrote("runs", "signal", lease.id, "paid", '{"b": 1.0, "a":2}', url=url)
    [[text]] = db.execute("select payload_json from byrote_signals").fetchall()

    assert (said.code, said.out) == (0, f"{lease.id}  READY  signalled\n")
    assert text == '{"b": 1.0, "a":2}'


def test_a_signal_without_a_payload_brings_null(url: str, db: Db) -> None:
    [run_id] = enqueue(db)
    said = byrote("runs", "signal", run_id, "paid", "--json", url=url)

    assert said.object["done"]
    assert db.execute("select payload_json from byrote_signals").fetchone() == ("null",)


def test_what_cannot_be_signalled_is_refused_with_its_code(url: str, db: Db) -> None:
    lease = leased(db)
    finish(db, [success(lease)])

    assert byrote("runs", "signal", lease.id, "paid", url=url).code == 1
    assert byrote("runs", "signal", NEVER, "paid", url=url).code == 4
    assert byrote("runs", "signal", lease.id, "paid", "{", url=url).code == 2
    assert byrote("runs", "signal", lease.id, "", url=url).code == 2
    assert count(db, "byrote_signals") == 0


def test_show_lists_the_steps_of_a_run(url: str, db: Db) -> None:
    lease = leased(db)
    note(db, line(lease, 1, "charge", {"ok": True}), wait(lease, 2, "event", "paid"))
    note(db, wait(lease, 3, "event", "late", us=0))
    out = byrote("runs", "show", lease.id, url=url).out
    [charge, paid, late] = byrote("runs", "show", lease.id, "--json", url=url).object["steps"]

    assert f"charge  {1:>7}" in out
    assert pack({"ok": True}).digest.hex() in out
    assert "waits until" in out
    assert "timed out" in out
    assert (charge["sequence"], charge["kind"], charge["result"]) == (1, "step", {"ok": True})
    assert (paid["open"], late["open"], paid["result"]) == (True, False, None)


def test_a_run_without_steps_shows_none(url: str, db: Db) -> None:
    [run_id] = enqueue(db)

    assert "steps" not in byrote("runs", "show", run_id, url=url).out
    assert byrote("runs", "show", run_id, "--json", url=url).object["steps"] == []
