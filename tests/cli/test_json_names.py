# SPDX-License-Identifier: MIT
"""One name per thing in the `--json` of all commands: only names of one vocabulary."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.console import byrote
from tests.cli.runs.test_bulk import fail
from tests.store.runs.test_progress import tell
from tests.store.steps.test_step import leased
from tests.support import Db, enqueue, register

WORDS = """
    id run runs status state wait_reason why queue queues task tasks version priority labels
    args kwargs spec spec_hash result result_hash retry timeout_s unique_key replay_of replays
    memo_of shadow seed provenance usage traceparent steps errors error fault progress percent
    done total message data retrying attempt attempts charged losses max_attempts

    at as_of due enqueued_at run_after started_at last_attempted_at finished_at leased_until
    cancel_requested_at paused_at seen_at began_at updated_at eta next_at last_at
    created_at expires_at revoked_at used_at holder

    seq xid ordinal schema kind digest token lease_token move moves then cursor events

    ready waiting running dead depth oldest_ready_s unserved unserved_for_s paused count_max
    keep_done_s keep_dead_s matched locked dry_run

    worker workers worker_ids leased_by host pid python hands concurrency finished alive idle
    stopping

    stats window_s under_way enqueued succeeded retried failed cancelled lost per_s wait_s run_s
    p50 p95 p99

    name timing zone catch_up overlap jitter_s origin last_run skipped ticks

    healthy checks advice sound check counts findings head unchained uncovered missing up_to_date
    done_days events_days outputs outputs_days shadows role rate

    policy warning
"""
"""Every name that an output may have. Moments end in `_at`, times in `_s`; an object that is a run
has its `id`, another that refers to one has its `run`. `enqueue` has a `policy` (its options are
those of the app, of workers, or none: the defaults), and a `warning` about what workers know of the
task. Before you add a name, look for it here."""
VOCABULARY = frozenset(WORDS.split())

COMMANDS = (
    "runs list", "runs show {run}", "runs history {run}", "runs logs {run}",
    "runs artifacts {run}", "runs show {dead}", "runs retry {dead}", "runs cancel {run}",
    "runs cancel --task t --dry-run", "dead list", "queues list", "queues pause default",
    "queues set default", "queues purge default --dry-run", "queues unserved default 2h",
    "queues events default all", "workers", "top --once", "schedules list", "schedules show tidy",
    "events", "doctor", "verify", "prune --dry-run", "migrate --check",
    "enqueue t --timeout 3s", "runs show {running}", "runs signal {run} go", "replay {dead}",
    "token list",
)  # fmt: skip


NOT_OURS = {"args", "kwargs", "labels", "result", "spec", "data", "errors", "matched", "counts"}


def keys(value: Any) -> Iterator[str]:
    """Every key of an output, but not those of users' own values, nor what counts are by."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield name
            if name not in NOT_OURS:
                yield from keys(part)
    elif isinstance(value, list):
        for part in value:
            yield from keys(part)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_has_only_the_names_of_the_vocabulary(db: Db, url: str, command: str) -> None:
    register(db, "w", "default")
    lease = leased(db)
    tell(db, lease, 2, 5, "mixing")
    [dead], [run] = fail(db, 1), enqueue(db, timeout="3s")
    made = byrote("schedules", "add", "tidy", "t", "--every", "1h", "--timeout", "3s", url=url)
    token = byrote("token", "create", "ci", "--role", "read", url=url)
    assert (made.code, token.code) == (0, 0), made.err + token.err
    words = command.format(run=run, dead=dead, running=lease.id).split()
    shown = byrote(*words, "--json", url=url)
    found = {name for one in shown.objects for name in keys(one)}

    assert found - VOCABULARY == set()
    assert shown.code in {0, 1, 3}, shown.err


def test_a_run_under_way_has_the_names_of_a_run(db: Db, url: str) -> None:
    lease = leased(db)
    tell(db, lease, 2, 5, "mixing")
    [shown] = byrote("top", "--once", "--json", url=url).object["stats"]["under_way"]

    assert shown.keys() == {"id", "task", "queue", "progress"}
    assert shown["id"] == lease.id


@pytest.mark.parametrize("command", ["runs list", "dead list", "runs show {run}", "schedules list"])
def test_runs_and_schedules_have_the_same_names(db: Db, url: str, command: str) -> None:
    register(db, "w", "default")
    [run] = fail(db, 1)
    byrote("schedules", "add", "tidy", "t", "--every", "1h", "--timeout", "3s", url=url)
    shown = byrote(*command.format(run=run).split(), "--json", url=url)

    assert {"queue", "task", "version", "timeout_s"} <= shown.objects[0].keys()


def test_queues_and_top_count_the_same_depth(db: Db, url: str) -> None:
    enqueue(db, 3)
    [queue] = byrote("queues", "--json", url=url).objects
    [shown] = byrote("top", "--once", "--json", url=url).object["stats"]["queues"]

    assert queue["depth"] == 3
    assert "depth" in shown
