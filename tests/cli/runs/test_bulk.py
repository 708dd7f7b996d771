# SPDX-License-Identifier: MIT
"""Commands on all runs that match filters."""

from datetime import timedelta

import pytest

from byrote.assembly.operations import bulk
from byrote.store.connect import DatabaseAddress
from byrote.testing import FakeClock
from tests.cli.console import byrote
from tests.store.test_locks import locked
from tests.support import Db, claim, enqueue, finish, history, run_of, verdict


def fail(db: Db, count: int, task: str = "t") -> list[str]:
    """Dead letters of a task."""
    ids = enqueue(db, count, task=task)
    leases = claim(db, limit=count, tasks=(f"{task}@1",))
    finish(db, [verdict(lease, "F") for lease in leases])
    return ids


def statuses(db: Db, ids: list[str]) -> set[str]:
    return {run_of(db, run_id).status.value for run_id in ids}


def test_dead_letters_of_a_task_are_retried_and_others_stay(db: Db, url: str) -> None:
    wanted, other, later = fail(db, 3), fail(db, 2, "other"), enqueue(db, run_after="1h")
    shown = byrote("runs", "retry", "--task", "t", "--yes", url=url)

    assert (shown.code, shown.out) == (0, "3 runs retried.\n")
    assert statuses(db, wanted) == {"READY"}
    assert statuses(db, other) == {"FAILED"}
    assert statuses(db, later) == {"WAITING"}
    assert history(db, wanted[0])[-1] == "Revived"


def test_since_counts_from_the_end_of_dead_letters(db: Db, url: str, clock: FakeClock) -> None:
    old = fail(db, 1)
    clock.advance(hours=2)
    new = fail(db, 2)
    shown = byrote("runs", "retry", "--since", "2020-01-01T00:00Z", "--dry-run", "--json", url=url)
    assert shown.object["matched"] == {"FAILED": 3}
    moment = run_of(db, new[0]).finished_at
    assert moment is not None
    since = (moment - timedelta(hours=1)).isoformat()
    byrote("runs", "retry", "--since", since, "--yes", url=url)

    assert (statuses(db, old), statuses(db, new)) == ({"FAILED"}, {"READY"})


def test_unfinished_runs_are_cancelled_in_batches(
    db: Db, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "BATCH", 3)
    ids = enqueue(db, 8)
    claim(db, limit=1)
    shown = byrote("runs", "cancel", "--queue", "default", "--yes", "--json", url=url).object

    assert shown == {
        "dry_run": False, "matched": {"READY": 7, "RUNNING": 1}, "done": 8, "locked": [],
    }  # fmt: skip
    assert statuses(db, ids) == {"CANCELLED", "RUNNING"}


def test_a_locked_run_is_reported_and_the_others_are_cancelled(
    db: Db, url: str, address: DatabaseAddress
) -> None:
    ids = enqueue(db, 3)
    with locked(address, "byrote_task_runs", "result_id", ids[1]):
        shown = byrote("runs", "cancel", "--task", "t", "--yes", url=url)

    assert shown.code == 1
    assert "2 runs cancelled." in shown.out
    assert "1 run is locked by another transaction" in shown.out
    assert run_of(db, ids[1]).status == "READY"


def test_without_a_terminal_a_command_on_many_needs_yes(db: Db, url: str) -> None:
    ids = enqueue(db, 2)
    shown = byrote("runs", "cancel", "--task", "t", url=url)

    assert shown.code == 2
    assert "Cancel 2 ready runs? This is not a terminal: add --yes" in shown.err
    assert statuses(db, ids) == {"READY"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Give the ids of runs, or a filter such as --task"),
        (("01932c4e", "--task", "t"), "not both"),
        (("--status", "failed"), "Name a queue, task, spec hash, label or time"),
    ],
)
def test_ids_or_filters_are_needed(url: str, words: tuple[str, ...], message: str) -> None:
    shown = byrote("runs", "retry", *words, url=url)

    assert (shown.code, message in shown.err) == (2, True)


def test_a_dry_run_changes_nothing_and_an_empty_match_succeeds(db: Db, url: str) -> None:
    ids = enqueue(db, 2)
    shown = byrote("queues", "purge", "default", "--dry-run", url=url)
    none = byrote("runs", "retry", "--task", "t", "--yes", url=url)

    assert shown.out == "2 ready runs would be cancelled; nothing was changed.\n"
    assert (none.code, none.out) == (0, "No runs match.\n")
    assert statuses(db, ids) == {"READY"}


def test_a_purge_leaves_running_runs_and_other_queues(db: Db, url: str) -> None:
    running, other = enqueue(db), enqueue(db, queue="mail")
    claim(db)
    waiting = [*enqueue(db, 2), *enqueue(db, run_after="1h")]
    shown = byrote("queues", "purge", "default", "--yes", url=url)

    assert shown.out == "3 runs cancelled.\n"
    assert statuses(db, waiting) == {"CANCELLED"}
    assert (statuses(db, running), statuses(db, other)) == ({"RUNNING"}, {"READY"})


def test_a_purge_of_an_unknown_queue_names_the_known_ones(db: Db, url: str) -> None:
    enqueue(db)
    shown = byrote("queues", "purge", "defualt", "--yes", url=url)

    assert (shown.code, "default" in shown.err) == (4, True)


def test_a_queue_is_set_and_shown(db: Db, url: str) -> None:
    enqueue(db)
    shown = byrote("queues", "set", "default", "--keep-done", "7d", "--json", url=url).object
    again = byrote("queues", "set", "default", url=url)
    bad = byrote("queues", "set", "default", "--keep-done", "1h", url=url)

    assert shown == {"queue": "default", "keep_done_s": 604800.0, "keep_dead_s": 7776000.0}
    assert again.out == "default keeps ended runs for 7d and dead letters for 90d.\n"
    assert (bad.code, "the minimum is 1d" in bad.err) == (2, True)


def test_the_list_takes_since(db: Db, url: str, clock: FakeClock) -> None:
    enqueue(db)
    clock.advance(hours=2)
    [new] = enqueue(db)
    since = (run_of(db, new).enqueued_at - timedelta(hours=1)).isoformat()

    shown = byrote("runs", "list", "--since", since, "--json", url=url)

    assert [one["id"] for one in shown.objects] == [new]
