-- Every run, by id, as far as it is verified: read through a cursor, so that any number fits.
select
  run.result_id::text, run.home, run.queue_name, run.status, run.wait_reason, run.moves, run.attempts, run.charged,
  run.losses, run.max_attempts, run.run_after, run.leased_by, run.lease_token::text, run.leased_until, run.enqueued_at,
  run.started_at, run.last_attempted_at, run.cancel_requested_at, run.finished_at, run.spec_json, run.spec_hash,
  run.return_json, run.result_hash
from (
  select
    'queue' as home, result_id, queue_name, status, wait_reason, moves, attempts, charged, losses, max_attempts,
    run_after, leased_by, lease_token, leased_until, enqueued_at, started_at, last_attempted_at, cancel_requested_at,
    finished_at, spec_json, spec_hash, return_json, result_hash
  from byrote_task_runs
  union all
  select
    'archive', result_id, queue_name, status, wait_reason, moves, attempts, charged, losses, max_attempts,
    run_after, leased_by, lease_token, leased_until, enqueued_at, started_at, last_attempted_at, cancel_requested_at,
    finished_at, spec_json, spec_hash, return_json, result_hash
  from byrote_archive
  union all
  select
    'dead', result_id, queue_name, status, wait_reason, moves, attempts, charged, losses, max_attempts,
    run_after, leased_by, lease_token, leased_until, enqueued_at, started_at, last_attempted_at, cancel_requested_at,
    finished_at, spec_json, spec_hash, return_json, result_hash
  from byrote_dead
) as run
order by run.result_id;
