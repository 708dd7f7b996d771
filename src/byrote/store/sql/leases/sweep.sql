-- Take back runs whose lease ran out: READY again, uncharged, until they have been lost too often.
-- A worker that vanishes is not the run's fault, but a run that takes its worker down each time must end.
-- Served by byrote_leased_for_sweep.
with clock as materialized (
  select byrote_now() as now
),
expired as materialized (
  select
    run.ctid as place,
    run.losses + 1 >= %(losses_max)s as hopeless,
    run.cancel_requested_at is not null as unwanted,
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
  set status = case when expired.unwanted then 'CANCELLED' else 'READY' end,
      finished_at = case when expired.unwanted then (select now from clock) end,
      losses = run.losses + 1,
      moves = run.moves + 1,
      leased_until = null,
      lease_token = null,  -- Nobody's word was heard: a late finish must not take itself for settled (finished_leases.sql).
      errors_json = case
        when jsonb_array_length(run.errors_json) >= 50 then run.errors_json - 1 || expired.error
        else coalesce(run.errors_json, '[]') || expired.error
      end
  from expired
  where run.ctid = expired.place
    and (expired.unwanted or not expired.hopeless)
  returning run.result_id, run.attempts, run.moves, run.leased_by, run.queue_name, run.status, run.errors_json -> -1 as error
),
gone as (
  delete from byrote_task_runs as run
  using expired
  where run.ctid = expired.place
    and expired.hopeless
    and not expired.unwanted
  returning run.*, expired.error
),
died as (
  insert into byrote_dead (
    result_id, workflow_id, replay_of, lease_token, rank, run_after, enqueued_at, started_at, last_attempted_at,
    finished_at, cancel_requested_at, timeout_ms, task_version, attempts, charged, losses, max_attempts, moves,
    priority, status, queue_name, task_path, leased_by, spec_hash, worker_ids, spec_json, errors_json, retry_json,
    labels, traceparent, as_of, provenance, usage, shadow, unique_key
  )
  select
    result_id, workflow_id, replay_of, null, rank, run_after, enqueued_at, started_at, last_attempted_at,
    (select now from clock), cancel_requested_at, timeout_ms, task_version, attempts, charged, losses + 1,
    max_attempts, moves + 1, priority, 'FAILED', queue_name, task_path, leased_by, spec_hash, worker_ids, spec_json,
    case
      when jsonb_array_length(errors_json) >= 50 then errors_json - 1 || error
      else coalesce(errors_json, '[]') || error
    end,
    retry_json, labels, traceparent, as_of, provenance, usage, shadow, unique_key
  from gone
  returning result_id, attempts, moves, leased_by, queue_name, status, errors_json -> -1 as error
),
swept as (
  select * from returned
  union all
  select * from died
),
told as (
  insert into byrote_events (schema, at, kind, worker, runs, attempts, moves, digests)
  select
    3,
    (select now from clock),
    case status when 'READY' then 'Lost' when 'CANCELLED' then 'Cancelled' else 'Failed' end,
    leased_by, array_agg(result_id), array_agg(attempts), array_agg(moves), array_agg(byrote_error_hash(error))
  from swept
  group by status, leased_by
),
back as materialized (
  select distinct queue_name from returned where status = 'READY'
),
woken as (
  select pg_notify('byrote_ready', queue_name)
  from back
  where exists (select 1 from byrote_workers as worker where worker.idle and back.queue_name = any (worker.queues))
  union all
  -- Busy workers, too: these runs keep their rank, which may lie behind the mark that claims start from.
  select pg_notify('byrote_returned', queue_name)
  from back
)
select swept.result_id::text, swept.status, swept.attempts, swept.leased_by, (select count(*) from woken) as woken
from swept;
