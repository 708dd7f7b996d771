-- Runs that existed at a moment, with their status and worker then, counted by queue, status and worker.
-- A run that has not moved since is as its row has it: accepted and never moved, dead or running since before, or waiting
-- for a retry since before. For the others the log has the last move up to then; it is read from the last attempt, else
-- the enqueue, of the oldest of them. Runs whose rows have been pruned since are not counted, nor are runs that had
-- ended, except for dead letters.
with existing as materialized (
  select
    result_id, queue_name, enqueued_at, run_after, last_attempted_at, finished_at, status, leased_by, moves,
    case when wait_reason = 'retry' then (errors_json -> -1 ->> 'at')::timestamptz end as retried_at
  from byrote_task_runs
  where enqueued_at <= %(at)s
    and (finished_at is null or finished_at > %(at)s)
    and shadow is not true
  union all
  -- Separate, so that the partitions of earlier days need not be read.
  select
    result_id, queue_name, enqueued_at, run_after, last_attempted_at, finished_at, status, leased_by, moves, null
  from byrote_archive
  where enqueued_at <= %(at)s
    and finished_at > %(at)s
    and shadow is not true
  union all
  select
    result_id, queue_name, enqueued_at, run_after, last_attempted_at, finished_at, status, leased_by, moves, null
  from byrote_dead
  where enqueued_at <= %(at)s
    and shadow is not true
),
unmoved as materialized (
  select
    result_id, queue_name, status,
    case when status = 'RUNNING' then leased_by end as worker,
    case
      when moves = 1 then greatest(run_after, enqueued_at)
      when status = 'FAILED' then finished_at
      when status = 'WAITING' then retried_at
      else last_attempted_at
    end as since
  from existing
  where moves = 1
    or (status = 'FAILED' and finished_at <= %(at)s)
    or (status = 'RUNNING' and last_attempted_at <= %(at)s)
    or retried_at <= %(at)s
),
moved as materialized (
  select
    existing.result_id, existing.queue_name, existing.enqueued_at,
    case when existing.last_attempted_at <= %(at)s then existing.last_attempted_at else existing.enqueued_at end as logged_since
  from existing
  where not exists (select 1 from unmoved where unmoved.result_id = existing.result_id)
),
last as (
  select distinct on (log.result_id)
    log.result_id, log.at, byrote_status_after(log.kind, log.schema, log.data) as status,
    first_value(log.worker) over (
      partition by log.result_id order by log.kind = 'Claimed' desc, log.move desc
    ) as worker
  from byrote_event_log as log
  where log.at <= %(at)s
    and log.at >= (select min(logged_since) from moved) - interval '5 minutes'  -- For a clock that was set back.
    and log.result_id in (select result_id from moved)
  order by log.result_id, log.move desc
),
found as (
  select queue_name, status, worker, since
  from unmoved
  union all
  select
    moved.queue_name, last.status, case when last.status = 'RUNNING' then last.worker end,
    greatest(last.at, moved.enqueued_at)
  from moved
  join last using (result_id)
)
select queue_name, status, worker, count(*) as runs, min(since) as since
from found
where status in ('READY', 'WAITING', 'RUNNING', 'FAILED')
group by queue_name, status, worker
order by queue_name, status, worker;
