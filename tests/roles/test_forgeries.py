# SPDX-License-Identifier: MIT
"""What a login with byrote_enqueue can still forge, `byrote verify` reports."""

import pytest

from byrote.store.verify import verify_on
from tests.support import Db, enqueue

FORGERIES = {
    "an event of a run": "insert into byrote_events (schema, at, kind, runs, attempts, moves)"
    " values (2, now(), 'Succeeded', array['{run}'::uuid], array[1], array[2])",
    "a run without an event": "insert into byrote_task_runs (result_id, queue_name, task_path,"
    " task_version, spec_json, spec_hash, run_after, rank, status, enqueued_at, max_attempts)"
    " values (gen_random_uuid(), 'q', 't', 1, '{{}}', sha256('x'), now(), 1, 'READY', now(), 1)",
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forgery_is_reported(owner: Db, forgery: str) -> None:
    with owner.transaction(force_rollback=True):
        [run] = enqueue(owner)
        assert verify_on(owner).sound
        owner.execute("set local role byrote_enqueue")
        owner.execute(FORGERIES[forgery].format(run=run).encode())
        owner.execute("reset role")

        assert not verify_on(owner).sound
