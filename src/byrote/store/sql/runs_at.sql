-- Runs that were there at a moment, with the status they had and who held them, counted by queue, status and worker.
-- A run that never moved is as it was accepted; of the others the log has the last move up to then. Runs whose rows
-- have been pruned since are not counted, nor are ended ones, but for dead letters.
with there as materialized (
  select result_id, queue_name, enqueued_at, run_after, status, moves
  from byrote_runs
  where enqueued_at <= %(at)s
    and (finished_at is null or finished_at > %(at)s or status = 'FAILED')
    and shadow is not true
),
last as (
  select distinct on (log.result_id)
    log.result_id, log.at, byrote_status_after(log.kind, log.schema, log.data) as status,
    first_value(log.worker) over (
      partition by log.result_id order by log.kind = 'Claimed' desc, log.move desc
    ) as worker
  from byrote_event_log as log
  where log.at <= %(at)s
    and log.at >= (select min(enqueued_at) from there where moves > 1)
    and log.result_id in (select result_id from there where moves > 1)
  order by log.result_id, log.move desc
),
seen as (
  select
    there.queue_name,
    case when there.moves = 1 then there.status else last.status end as status,
    case when last.status = 'RUNNING' then last.worker end as worker,
    greatest(case when there.moves = 1 then there.run_after else last.at end, there.enqueued_at) as since
  from there
  left join last using (result_id)
)
select queue_name, status, worker, count(*) as runs, min(since) as since
from seen
where status in ('READY', 'WAITING', 'RUNNING', 'FAILED')
group by queue_name, status, worker
order by queue_name, status, worker;
