-- Enqueue the specs of earlier runs again, byte for byte, as shadow runs in a separate queue: one attempt each.
-- The originals are only read. Labels are copied, since tasks see them; workflows, keys and traces are not.
with clock as materialized (
  select byrote_now() as now
),
copied as (
  insert into byrote_task_runs (
    result_id, replay_of, queue_name, task_path, task_version, spec_json, spec_hash, run_after, rank,
    status, enqueued_at, max_attempts, timeout_ms, labels, as_of, shadow
  )
  select
    requested.id, run.result_id, %(queue)s::text, run.task_path, run.task_version, run.spec_json, run.spec_hash,
    (select now from clock), byrote_micros((select now from clock)) + requested.ordinal,
    'READY', (select now from clock), 1, run.timeout_ms, run.labels, coalesce(run.as_of, run.enqueued_at), true
  from unnest(%(ids)s::uuid[], %(originals)s::uuid[]) with ordinality as requested (id, original, ordinal)
  join byrote_runs as run on run.result_id = requested.original
  -- When it is sent again after a lost answer, the row exists already.
  on conflict (result_id) do nothing
  returning result_id, spec_hash
),
logged as (
  insert into byrote_events (schema, at, kind, runs, attempts, moves, digests, data)
  select
    3, (select now from clock), 'Enqueued', array_agg(result_id),
    array_fill(0, array[count(*)::integer]), array_fill(1, array[count(*)::integer]), array_agg(spec_hash),
    jsonb_object_agg(result_id, jsonb_build_object('shadow', true))
  from copied
  having count(*) > 0
)
select copied.result_id::text, (select byrote_wake(array[%(queue)s::text])) as notified
from copied;
