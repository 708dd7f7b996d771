-- Enqueue a run that will verify an earlier one, which it names as replay_of: one attempt, in the queue that is asked for.
-- Nothing happens for what has not ended by itself, for a shadow, and for an id that is there already.
with clock as materialized (
  select byrote_now() as now
),
asked as (
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
    -- The key of the queue's own table does not know of the archive and the dead.
    and not exists (select 1 from byrote_runs as known where known.result_id = %(id)s::uuid)
  on conflict (result_id) do nothing
  returning result_id, queue_name, enqueued_at, spec_hash
),
told as (
  insert into byrote_events (schema, at, kind, runs, attempts, moves, digests)
  select 3, (select now from clock), 'Enqueued', array_agg(result_id), array[0], array[1], array_agg(spec_hash)
  from asked
  having count(*) > 0
),
woken as (
  select pg_notify('byrote_ready', queue_name)
  from asked
  where exists (select 1 from byrote_workers as worker where worker.idle and asked.queue_name = any (worker.queues))
)
select asked.result_id::text, (select count(*) from woken) as woken
from asked;
