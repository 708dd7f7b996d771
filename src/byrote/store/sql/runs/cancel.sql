-- Cancel runs: at once when no worker executes them, else by asking their worker.
-- Never waits: runs whose rows another transaction has locked stay unchanged and are returned as LOCKED.
with clock as materialized (
  select byrote_now() as now
),
free as materialized (
  select run.result_id
  from byrote_task_runs as run
  where run.result_id = any (%(ids)s::uuid[])
    and run.status in ('WAITING', 'READY', 'RUNNING')
  for no key update skip locked
),
cancelled as (
  update byrote_task_runs as run
  set status = case when run.status = 'RUNNING' then run.status else 'CANCELLED' end,
      wait_reason = null,
      finished_at = case when run.status = 'RUNNING' then null else (select now from clock) end,
      cancel_requested_at = (select now from clock),
      moves = run.moves + 1
  where run.result_id = any (array(select result_id from free))
  returning run.result_id, run.attempts, run.moves, run.status, run.leased_by
),
logged as (
  insert into byrote_events (at, kind, runs, attempts, moves)
  select
    (select now from clock),
    case status when 'RUNNING' then 'CancelRequested' else 'Cancelled' end,
    array_agg(result_id), array_agg(attempts), array_agg(moves)
  from cancelled
  group by status
),
notified as (
  select pg_notify(byrote_channel('byrote_cancel'), leased_by)
  from (select distinct leased_by from cancelled where status = 'RUNNING') as holder
)
select cancelled.result_id::text, cancelled.status, (select count(*) from notified) as notified
from cancelled
union all
select run.result_id::text, 'LOCKED', 0
from byrote_task_runs as run
where run.result_id = any (%(ids)s::uuid[])
  and run.status in ('WAITING', 'READY', 'RUNNING')
  and run.result_id not in (select result_id from free);
