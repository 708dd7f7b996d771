-- Accept runs: READY when due, WAITING when not; all of them or none.
-- The sender chooses a run's id, so the primary key refuses a batch that is sent again after a lost answer.
-- Notifies workers only if one is idle: NOTIFY on every insert would serialise busy producers.
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
      labels jsonb, trace text, replay_of uuid
    )
  ) with ordinality as sent (
    id, queue, task, version, spec, hash, priority, due, delay_us, max_attempts, timeout_ms, retry,
    labels, trace, replay_of, ordinal
  )
  left join byrote_queues as queue on queue.queue_name = sent.queue
),
accepted as (
  insert into byrote_task_runs (
    result_id, queue_name, task_path, task_version, spec_json, spec_hash, priority, run_after, rank,
    status, wait_reason, enqueued_at, max_attempts, timeout_ms, retry_json, labels, traceparent, replay_of
  )
  select
    id, queue, task, version, spec, decode(hash, 'hex'), coalesce(priority, 0), run_after,
    -- The position keeps the order in which a batch was sent, a microsecond apart.
    byrote_micros(run_after) + ordinal - coalesce(priority, 0) * ageing_us,
    case when run_after > now then 'WAITING' else 'READY' end,
    case when run_after > now then 'due' end,
    now, coalesce(max_attempts, 1), timeout_ms, retry, labels, trace, replay_of
  from requested
  returning result_id, queue_name, status
),
-- From the request, all of which was accepted: the role byrote_enqueue may not read a spec's hash back.
logged as (
  insert into byrote_events (schema, at, kind, runs, attempts, moves, digests, data)
  select
    3, (select now from clock), 'Enqueued', array_agg(id),
    array_fill(0, array[count(*)::integer]), array_fill(1, array[count(*)::integer]), array_agg(decode(hash, 'hex')),
    jsonb_object_agg(id, jsonb_build_object('run_after', run_after)) filter (where run_after > now)
  from requested
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
select count(*) as accepted, (select count(*) from notified) as notified, (select now from clock) as enqueued_at
from accepted;
