-- Accept runs like enqueue.sql, except those whose unique key an unfinished run of the same task holds.
-- Waits for a transaction that is about to accept or to end a run with such a key, and follows its outcome.
-- Returns the runs `made` and the runs that `held` a key when the statement began. A run in neither list met a holder
-- that came later; the sender then repeats the statement with `again`, which skips runs of the batch that were made
-- before and returns them as `landed`.
-- Inserts in the order of keys, so that two senders of the same keys do not deadlock.
-- Served by byrote_unique_for_enqueue.
with clock as materialized (
  select byrote_now() as now
),
requested as materialized (
  select
    sent.*,
    clock.now,
    -- Never in the past: a time long ago would outweigh every priority.
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
    labels, trace, key, ordinal
  )
  left join byrote_queues as queue on queue.queue_name = sent.queue
),
landed as materialized (
  select requested.id, requested.task, requested.key
  from requested
  where (select %(again)s::boolean)  -- A sub-select: with a constant, the server would plan the statement each time.
    and byrote_landed(requested.id)
),
accepted as (
  insert into byrote_task_runs (
    result_id, queue_name, task_path, task_version, spec_json, spec_hash, priority, run_after, rank,
    status, wait_reason, enqueued_at, max_attempts, timeout_ms, retry_json, labels, traceparent, unique_key
  )
  select
    id, queue, task, version, spec, decode(hash, 'hex'), coalesce(priority, 0), run_after,
    -- The position keeps the order in which a batch was sent, a microsecond apart.
    byrote_micros(run_after) + ordinal - coalesce(priority, 0) * ageing_us,
    case when run_after > now then 'WAITING' else 'READY' end,
    case when run_after > now then 'due' end,
    now, coalesce(max_attempts, 1), timeout_ms, retry, labels, trace, key
  from requested
  where not exists (
    select 1
    from landed
    where landed.id = requested.id or (landed.task = requested.task and landed.key = requested.key)
  )
  order by key, task, ordinal
  on conflict (task_path, unique_key)
    where unique_key is not null and status in ('WAITING', 'READY', 'RUNNING')
    do nothing
  returning result_id, task_path, unique_key, queue_name, status, run_after
),
logged as (
  insert into byrote_events (schema, at, kind, runs, attempts, moves, digests, data)
  select
    3, (select now from clock), 'Enqueued', array_agg(result_id),
    array_fill(0, array[count(*)::integer]), array_fill(1, array[count(*)::integer]), array_agg(decode(requested.hash, 'hex')),
    jsonb_object_agg(result_id, jsonb_build_object('run_after', accepted.run_after)) filter (where status = 'WAITING')
  from accepted
  join requested on requested.id = accepted.result_id  -- The role byrote_enqueue may not read a spec's hash back.
  having count(*) > 0
),
notified as (
  select pg_notify(byrote_channel('byrote_ready'), queue_name)
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
  (select count(*) from notified) as notified
from accepted
union all
select 'landed', id::text, task, key, (select now from clock), 0
from landed
union all
select 'held', holder.result_id::text, holder.task_path, holder.unique_key, (select now from clock), 0
from requested
cross join lateral (
  select run.result_id, run.task_path, run.unique_key
  from byrote_task_runs as run
  where run.task_path = requested.task
    and run.unique_key = requested.key
    and run.unique_key is not null
    and run.status in ('WAITING', 'READY', 'RUNNING')
  limit 1  -- There is only one. Without the limit, the planner expects a large batch and reads the whole table.
) as holder;
