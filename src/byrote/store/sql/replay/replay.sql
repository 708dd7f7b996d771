-- Enqueue the spec of an earlier run again, byte for byte, as a new run that names its original.
-- The label byrote.seed makes it draw the random numbers of the first run in a chain of replays.
-- Without its unique key: a replay must compute the result again, whatever else is under way.
with clock as materialized (
  select byrote_now() as now
),
copied as (
  insert into byrote_task_runs (
    result_id, replay_of, queue_name, task_path, task_version, spec_json, spec_hash, priority, run_after, rank,
    status, enqueued_at, max_attempts, timeout_ms, retry_json, labels, as_of
  )
  select
    %(id)s::uuid, run.result_id, run.queue_name, run.task_path, run.task_version, run.spec_json, run.spec_hash,
    run.priority, (select now from clock),
    run.rank + byrote_micros((select now from clock)) - byrote_micros(run.run_after),
    'READY', (select now from clock), run.max_attempts, run.timeout_ms, run.retry_json,
    jsonb_build_object('byrote.seed', run.result_id) || coalesce(run.labels, '{}'),
    coalesce(run.as_of, run.enqueued_at)
  from byrote_runs as run
  where run.result_id = %(original)s::uuid
    and run.shadow is not true
  returning result_id, queue_name, spec_hash
),
logged as (
  insert into byrote_events (schema, at, kind, runs, attempts, moves, digests)
  select 3, (select now from clock), 'Enqueued', array_agg(result_id), array[0], array[1], array_agg(spec_hash)
  from copied
  having count(*) > 0
)
select copied.result_id::text, byrote_wake(array[copied.queue_name]) as notified
from copied;
