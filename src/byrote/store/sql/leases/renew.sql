-- Extend leases that are still held, and return which of their runs have a cancellation requested.
-- A lease missing from the answer was lost. `any (array[…])`: see finish.sql.
with clock as materialized (
  select byrote_now() as now, set_config('lock_timeout', '250ms', true)  -- The longest wait for a row: see store/locks.py.
),
held as materialized (
  select id, token, attempt
  from jsonb_to_recordset(%(leases)s::jsonb) as sent (id uuid, token uuid, attempt integer)
),
renewed as (
  update byrote_task_runs as run
  set leased_until = (select now from clock) + %(lease_for)s,
      moves = run.moves + 1
  from held
  where run.result_id = any (array[held.id])
    and run.lease_token = held.token
    and run.status || '' = 'RUNNING'  -- Keeps the partial index out: see finish.sql.
    and run.leased_until > (select now from clock)
  returning
    run.result_id, coalesce(held.attempt, run.attempts) as attempts, run.moves, run.leased_until, run.leased_by,
    run.cancel_requested_at, run.queue_name
),
logged as (
  insert into byrote_events (at, kind, worker, leased_until, runs, attempts, moves)
  select
    (select now from clock), 'Renewed', min(leased_by), min(leased_until),
    array_agg(result_id), array_agg(attempts), array_agg(moves)
  from renewed
  where queue_name <> all (array(select queue_name from byrote_queues where events = 'few'))
  having count(*) > 0
)
select result_id::text, cancel_requested_at is not null as cancel
from renewed;
