-- Take back runs whose lease has expired: READY again, uncharged, until they have been lost too often.
-- A vanished worker is not the run's fault, but a run that crashes its worker each time must end.
-- Served by byrote_leased_for_sweep.
with clock as materialized (
  select byrote_now() as now
),
expired as materialized (
  select
    run.ctid as tid,
    run.losses + 1 >= %(losses_max)s as exhausted,
    run.cancel_requested_at is not null as cancel_requested,
    jsonb_build_object(
      'kind', 'lost', 'type', 'LeaseLost', 'attempt', run.attempts, 'worker', run.leased_by,
      'at', (select now from clock),
      'message', 'The worker did not renew its lease in time: it was killed, frozen or cut off.'
    ) as error
  from byrote_task_runs as run
  where run.status = 'RUNNING'
    and run.leased_until <= (select now from clock)
  order by run.leased_until
  limit %(limit)s
  for update skip locked
),
returned as (
  update byrote_task_runs as run
  set status = case when expired.cancel_requested then 'CANCELLED' else 'READY' end,
      finished_at = case when expired.cancel_requested then (select now from clock) end,
      losses = run.losses + 1,
      moves = run.moves + 1,
      leased_until = null,
      lease_token = null,  -- No verdict was accepted: a late finish must not pass for settled (finished_leases.sql).
      errors_json = byrote_appended(run.errors_json, expired.error, 1)
  from expired
  where run.ctid = expired.tid
    and (expired.cancel_requested or not expired.exhausted)
  returning run.result_id, run.attempts, run.moves, run.leased_by, run.queue_name, run.status, run.errors_json -> -1 as error
),
deleted as (
  delete from byrote_task_runs as run
  using expired
  where run.ctid = expired.tid
    and expired.exhausted
    and not expired.cancel_requested
  returning run, expired.error
),
failed as (
  insert into byrote_dead
  select (dead.run).*
  from (
    select byrote_failed(run, (select now from clock), error, lost => 1) as run
    from deleted
    offset 0  -- One call for all columns.
  ) as dead
  returning result_id, attempts, moves, leased_by, queue_name, status, errors_json -> -1 as error
),
swept as (
  select * from returned
  union all
  select * from failed
),
logged as (
  insert into byrote_events (schema, at, kind, worker, runs, attempts, moves, digests)
  select
    3,
    (select now from clock),
    case status when 'READY' then 'Lost' when 'CANCELLED' then 'Cancelled' else 'Failed' end,
    leased_by, array_agg(result_id), array_agg(attempts), array_agg(moves), array_agg(byrote_error_hash(error))
  from swept
  group by status, leased_by
),
-- Busy workers, too: these runs keep their rank, which may be below the floor that claims start from.
notified as (
  select pg_notify(byrote_channel('byrote_returned'), queue_name)
  from (select distinct queue_name from returned where status = 'READY') as fresh
)
select
  swept.result_id::text, swept.status, swept.attempts, swept.leased_by, (select count(*) from notified) as notified,
  (select byrote_wake(array(select queue_name from returned where status = 'READY'))) as woken
from swept;
