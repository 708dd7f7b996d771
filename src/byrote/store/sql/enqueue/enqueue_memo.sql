-- Accept runs like enqueue_unique.sql, and answer at once those whose spec this very code has computed before: they are
-- SUCCESSFUL from the start and name the run they have their result from. A run for later is not answered now.
-- What is answered executes nothing, so it neither needs its unique key nor holds it.
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
      labels jsonb, trace text, code text, key text
    )
  ) with ordinality as sent (
    id, queue, task, version, spec, hash, priority, due, delay_us, max_attempts, timeout_ms, retry,
    labels, trace, code, key, place
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
    status, wait_reason, enqueued_at, max_attempts, timeout_ms, retry_json, labels, traceparent,
    finished_at, moves, return_json, result_hash, as_of, memo_of, unique_key
  )
  select
    id, queue, task, version, spec, decode(hash, 'hex'), coalesce(priority, 0), run_after,
    -- The place keeps the order in which a batch was sent, a microsecond apart.
    byrote_micros(run_after) + place - coalesce(priority, 0) * ageing_us,
    case when run_after > now then 'WAITING' when memo.result_id is null then 'READY' else 'SUCCESSFUL' end,
    case when run_after > now then 'due' end,
    now, coalesce(max_attempts, 1), timeout_ms, retry, labels, trace,
    case when memo.result_id is not null then now end,
    case when memo.result_id is null then 1 else 2 end,
    memo.return_json, memo.result_hash, memo.as_of, memo.result_id, key
  from asked
  left join lateral (
    select kept.result_id, kept.return_json, kept.result_hash, kept.as_of
    from byrote_memo as kept
    where kept.spec_hash = decode(asked.hash, 'hex')
      and kept.code_hash = decode(asked.code, 'hex')
      and kept.kept_until > asked.now
      and asked.run_after <= asked.now
  ) as memo on true
  where not exists (
    select 1
    from landed
    where landed.id = asked.id or (landed.task = asked.task and landed.key = asked.key)
  )
  order by key, task, place
  on conflict (task_path, unique_key)
    where unique_key is not null and status in ('WAITING', 'READY', 'RUNNING')
    do nothing
  returning result_id, task_path, unique_key, queue_name, status, memo_of, run_after, result_hash
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
answered as (
  insert into byrote_events (schema, at, kind, runs, attempts, moves, digests, data)
  select
    3, (select now from clock), 'Remembered', array_agg(result_id),
    array_fill(0, array[count(*)::integer]), array_fill(2, array[count(*)::integer]), array_agg(result_hash),
    jsonb_object_agg(result_id, jsonb_build_object('memo_of', memo_of))
  from accepted
  where memo_of is not null
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
  'made' as what, result_id::text as id, task_path as task, case when memo_of is null then unique_key end as key,
  (select now from clock) as at, (select count(*) from woken) as woken
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
