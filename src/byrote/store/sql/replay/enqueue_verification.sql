-- Enqueue a run that will verify an earlier one, which it names as replay_of: one attempt, in the requested queue.
-- Does nothing for a run that has not ended by itself, for a shadow run, and for an id that exists already.
with clock as materialized (
  select byrote_now() as now
),
accepted as (
  insert into byrote_task_runs (
    result_id, replay_of, queue_name, task_path, task_version, spec_json, spec_hash, run_after, rank,
    status, enqueued_at, max_attempts
  )
  select
    %(id)s::uuid, run.result_id, %(queue)s::text, %(task)s::text, %(version)s::integer, %(spec)s::text, %(hash)s::bytea,
    (select now from clock), byrote_micros((select now from clock)), 'READY', (select now from clock), 1
  from byrote_runs as run
  where run.result_id = %(original)s::uuid
    and run.status in ('SUCCESSFUL', 'FAILED')
    and run.shadow is not true
    -- The primary key of byrote_task_runs does not cover the archive and the dead letters.
    and not exists (select 1 from byrote_runs as known where known.result_id = %(id)s::uuid)
  on conflict (result_id) do nothing
  returning result_id, queue_name, enqueued_at, spec_hash
),
logged as (
  insert into byrote_events (schema, at, kind, runs, attempts, moves, digests)
  select 3, (select now from clock), 'Enqueued', array_agg(result_id), array[0], array[1], array_agg(spec_hash)
  from accepted
  having count(*) > 0
)
select accepted.result_id::text, byrote_wake(array[accepted.queue_name]) as notified
from accepted;
