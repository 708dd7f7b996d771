-- The verified columns of every run, by id: read through a cursor, so that any number fits.
select
  run.result_id::text, run.stored_in, run.queue_name, run.task_path, run.task_version, run.status, run.wait_reason, run.moves,
  run.attempts, run.charged, run.losses, run.max_attempts, run.run_after, run.leased_by, run.lease_token::text,
  run.leased_until, run.enqueued_at, run.started_at, run.last_attempted_at, run.cancel_requested_at, run.finished_at,
  run.spec_json, run.spec_hash, run.return_json, run.result_hash, run.provenance,
  array(
    select byrote_error_hash(error.value)
    from jsonb_array_elements(run.errors_json) with ordinality as error (value, ordinal)
    order by error.ordinal
  ) as errors
from (
  select 'queue' as stored_in, queued.* from byrote_task_runs as queued
  union all
  select 'archive', archived.* from byrote_archive as archived
  union all
  select 'dead', dead.* from byrote_dead as dead
) as run
order by run.result_id;
