-- Lease up to `quota` ready runs of each queue to one worker: highest priority first, then oldest.
-- Never waits: rows that another worker is claiming are skipped. Only tasks that the worker knows; paused queues are left
-- alone.
-- The sub-select is an InitPlan, so it runs exactly once: no plan can claim more than was requested.
-- `floor` is the rank to start from, for when a long snapshot elsewhere keeps dead entries in the index.
-- Served by byrote_ready_for_claim.
with clock as materialized (
  select byrote_now() as now
),
leased as (
  update byrote_task_runs as run
  set status = 'RUNNING',
      attempts = run.attempts + 1,
      moves = run.moves + 1,
      leased_by = %(worker)s,
      lease_token = %(token)s::uuid,
      leased_until = (select now from clock) + %(lease_for)s,
      started_at = coalesce(run.started_at, (select now from clock)),
      last_attempted_at = (select now from clock),
      worker_ids = case
        when run.attempts < 1000 then run.worker_ids || %(worker)s::text
        else run.worker_ids[2:] || %(worker)s::text
      end
  where run.ctid = any (array(
    select ready.ctid
    from unnest(%(queues)s::text[], %(quotas)s::integer[], %(floors)s::bigint[]) as requested (queue_name, quota, floor)
    cross join lateral (
      select head.ctid
      from byrote_task_runs as head
      where head.queue_name = requested.queue_name
        and head.status = 'READY'
        and head.rank >= requested.floor
        and head.task_path || '@' || head.task_version = any (%(tasks)s::text[])
      order by head.rank
      limit requested.quota
      for update skip locked
    ) as ready
    where not exists (
      select 1 from byrote_queues as queue
      where queue.queue_name = requested.queue_name and queue.paused_at is not null
    )
  ))
  returning
    run.result_id, run.queue_name, run.task_path, run.task_version, run.spec_json, run.attempts, run.charged,
    run.losses, run.max_attempts, run.timeout_ms, run.retry_json, run.labels, run.traceparent, run.spec_hash,
    run.rank, run.moves, run.leased_until, run.enqueued_at, run.as_of
),
logged as (
  insert into byrote_events (schema, at, kind, worker, lease_token, leased_until, runs, attempts, moves)
  select
    2, (select now from clock), 'Claimed', %(worker)s, %(token)s::uuid, min(leased_until),
    array_agg(result_id), array_agg(attempts), array_agg(moves)
  from leased
  having count(*) > 0
)
select
  result_id::text, queue_name, task_path, task_version, spec_json, attempts, charged, losses, max_attempts,
  timeout_ms, retry_json, labels::text, traceparent, spec_hash, rank,
  greatest(byrote_micros((select now from clock)) - byrote_micros(enqueued_at), 0) as age_us,
  byrote_micros(coalesce(as_of, enqueued_at)) as as_of_us
from leased
order by rank;  -- RETURNING guarantees no order; this statement does.
