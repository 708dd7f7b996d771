-- Accept runs like enqueue.sql, but none whose unique key an unfinished run of the same task has already.
-- Waits for a transaction that is just about to accept or to end a run with such a key, and goes by what became of it.
-- Says what was `made` and who `held` a key when the statement began. Whoever is in neither list met a run that came later
-- than that, and asks `again`: then what has been made of the same batch before is left alone and said to be made.
-- In the order of keys: two that send the same ones do not wait for each other in a circle.
-- Served by byrote_unique_for_enqueue.
with clock as materialized (
  select byrote_now() as now
),
asked as materialized (
  select
    sent.*,
    clock.now,
    -- Never in the past: a moment long ago would outweigh every priority.
    greatest(sent.due, clock.now + coalesce(sent.delay_us, 0) * interval '1 microsecond') as run_after,
    coalesce(byrote_micros(clock.now + queue.ageing) - byrote_micros(clock.now), 10000000000000) as ageing_us
  from clock
  cross join rows from (
    jsonb_to_recordset(%(runs)s::jsonb) as (
      id uuid, queue text, task text, version integer, spec text, hash text, priority smallint,
      due timestamptz, delay_us bigint, max_attempts integer, timeout_ms bigint, retry text,
      labels jsonb, trace text, key text
    )
  ) with ordinality as sent (
    id, queue, task, version, spec, hash, priority, due, delay_us, max_attempts, timeout_ms, retry,
    labels, trace, key, place
  )
  left join byrote_queues as queue on queue.queue_name = sent.queue
),
landed as materialized (
  select asked.id, asked.task, asked.key
  from asked
  where (select %(again)s::boolean)  -- Selected, or knowing it would pay to plan the statement each time.
    and byrote_landed(asked.id)
),
accepted as (
  insert into byrote_task_runs (
    result_id, queue_name, task_path, task_version, spec_json, spec_hash, priority, run_after, rank,
    status, wait_reason, enqueued_at, max_attempts, timeout_ms, retry_json, labels, traceparent, unique_key
  )
  select
    id, queue, task, version, spec, decode(hash, 'hex'), coalesce(priority, 0), run_after,
    -- The place keeps the order in which a batch was sent, a microsecond apart.
    byrote_micros(run_after) + place - coalesce(priority, 0) * ageing_us,
    case when run_after > now then 'WAITING' else 'READY' end,
    case when run_after > now then 'due' end,
    now, coalesce(max_attempts, 1), timeout_ms, retry, labels, trace, key
  from asked
  where not exists (
    select 1
    from landed
    where landed.id = asked.id or (landed.task = asked.task and landed.key = asked.key)
  )
  order by key, task, place
  on conflict (task_path, unique_key)
    where unique_key is not null and status in ('WAITING', 'READY', 'RUNNING')
    do nothing
  returning result_id, task_path, unique_key, queue_name, status, run_after
),
told as (
  insert into byrote_events (schema, at, kind, runs, attempts, moves, digests, data)
  select
    3, (select now from clock), 'Enqueued', array_agg(result_id),
    array_fill(0, array[count(*)::integer]), array_fill(1, array[count(*)::integer]), array_agg(decode(asked.hash, 'hex')),
    jsonb_object_agg(result_id, jsonb_build_object('run_after', accepted.run_after)) filter (where status = 'WAITING')
  from accepted
  join asked on asked.id = accepted.result_id  -- Who may only enqueue may not read a spec's hash back.
  having count(*) > 0
),
woken as (
  select pg_notify('byrote_ready', queue_name)
  from (select distinct queue_name from accepted where status = 'READY') as fresh
  where exists (
    select 1
    from byrote_workers as worker
    where worker.idle
      and fresh.queue_name = any (worker.queues)
      and worker.seen_at > (select now from clock) - interval '1 minute'
  )
)
select
  'made' as what, result_id::text as id, task_path as task, unique_key as key, (select now from clock) as at,
  (select count(*) from woken) as woken
from accepted
union all
select 'landed', id::text, task, key, (select now from clock), 0
from landed
union all
select 'held', holder.result_id::text, holder.task_path, holder.unique_key, (select now from clock), 0
from asked
cross join lateral (
  select run.result_id, run.task_path, run.unique_key
  from byrote_task_runs as run
  where run.task_path = asked.task
    and run.unique_key = asked.key
    and run.unique_key is not null
    and run.status in ('WAITING', 'READY', 'RUNNING')
  limit 1  -- There is no other. Without it, the planner takes a batch for large and reads the whole table.
) as holder;
