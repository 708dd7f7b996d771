# SPDX-License-Identifier: MIT
import itertools

import psycopg
import pytest

from byrote.core.state import Status
from tests.support import Db

SOUND = {
    Status.WAITING: ("wait",),
    Status.READY: (),
    Status.RUNNING: ("lease",),
    Status.SUCCESSFUL: ("end",),
    Status.FAILED: ("end",),
    Status.CANCELLED: ("end",),
}
MARKS = [marks for n in range(4) for marks in itertools.combinations(("wait", "lease", "end"), n)]

INSERT = """
insert into byrote_task_runs (
  result_id, queue_name, task_path, task_version, spec_json, spec_hash, run_after, rank,
  enqueued_at, max_attempts, status, wait_reason, leased_until, lease_token, finished_at
) values (
  gen_random_uuid(), 'q', 't', 1, '{}', sha256(''), now(), 0, now(), 1, %(status)s,
  case when %(wait)s then 'due' end, case when %(lease)s then now() end,
  case when %(token)s then gen_random_uuid() end, case when %(end)s then now() end
)
"""


def write(db: Db, status: str, marks: tuple[str, ...], *, token: bool = True) -> None:
    held = {mark: mark in marks for mark in ("wait", "lease", "end")}
    db.execute(INSERT, {"status": status, "token": token, **held})


@pytest.mark.parametrize("status", Status)
def test_the_columns_of_a_row_agree_with_its_status(db: Db, status: Status) -> None:
    accepted = []
    for marks in MARKS:
        try:
            write(db, status, marks)
        except psycopg.errors.CheckViolation:
            continue
        accepted.append(marks)

    assert accepted == [SOUND[status]]


def test_no_row_has_another_status_or_a_lease_without_a_token(db: Db) -> None:
    for marks in MARKS:
        with pytest.raises(psycopg.errors.CheckViolation):
            write(db, "LOST", marks)
    with pytest.raises(psycopg.errors.CheckViolation):
        write(db, "RUNNING", ("lease",), token=False)
