-- Runs that were there at a moment, with the status they had and who held them, counted by queue, status and worker.
-- What has not moved since is as its row says: accepted and never moved, dead or running since before, or waiting for a
-- retry since before. Of the others the log has the last move up to then; it is read from the last attempt, else the
-- birth, of the oldest of them. Runs whose rows have been pruned since are not counted, nor are ended ones, but for
-- dead letters.
with there as materialized (
  select
    result_id, queue_name, enqueued_at, run_after, last_attempted_at, finished_at, status, leased_by, moves,
    case when wait_reason = 'retry' then (errors_json -> -1 ->> 'at')::timestamptz end as retried_at
  from byrote_task_runs
  where enqueued_at <= %(at)s
    and (finished_at is null or finished_at > %(at)s)
    and shadow is not true
  union all
  -- Apart, so that the days before need not be looked at.
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
  from there
  where moves = 1
    or (status = 'FAILED' and finished_at <= %(at)s)
    or (status = 'RUNNING' and last_attempted_at <= %(at)s)
    or retried_at <= %(at)s
),
moved as materialized (
  select
    there.result_id, there.queue_name, there.enqueued_at,
    case when there.last_attempted_at <= %(at)s then there.last_attempted_at else there.enqueued_at end as told_since
  from there
  where not exists (select 1 from unmoved where unmoved.result_id = there.result_id)
),
last as (
  select distinct on (log.result_id)
    log.result_id, log.at, byrote_status_after(log.kind, log.schema, log.data) as status,
    first_value(log.worker) over (
      partition by log.result_id order by log.kind = 'Claimed' desc, log.move desc
    ) as worker
  from byrote_event_log as log
  where log.at <= %(at)s
    and log.at >= (select min(told_since) from moved) - interval '5 minutes'  -- For a clock that was set back.
    and log.result_id in (select result_id from moved)
  order by log.result_id, log.move desc
),
seen as (
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
from seen
where status in ('READY', 'WAITING', 'RUNNING', 'FAILED')
group by queue_name, status, worker
order by queue_name, status, worker;
