-- Retry runs now, with a fresh budget: dead runs return to their queue, waiting runs stop waiting. `was` selects one of
-- the two, FAILED or WAITING. Shadow runs are left out: no caller waits for them.
-- Never waits: runs whose rows another transaction has locked, or the row of a wait that would end now, stay unchanged and
-- are returned as LOCKED.
-- Dead runs return without their unique key, which another run may hold by now; waiting runs have held theirs throughout.
-- Attempts continue to rise; the run's history is kept. A sleep or a wait for a signal ends now, too.
with clock as materialized (
  select byrote_now() as now
),
dead as materialized (
  select run.result_id
  from byrote_dead as run
  where run.result_id = any (%(ids)s::uuid[])
    and run.shadow is not true
    and coalesce(%(was)s::text, 'FAILED') = 'FAILED'
  for update skip locked
),
waiting as materialized (
  select run.result_id
  from byrote_task_runs as run
  where run.result_id = any (%(ids)s::uuid[])
    and run.status = 'WAITING'
    and run.wait_reason in ('due', 'retry', 'snooze', 'sleep', 'event')
    and coalesce(%(was)s::text, 'WAITING') = 'WAITING'
  for no key update skip locked
),
open_steps as materialized (
  select step.result_id, step.sequence
  from byrote_steps as step
  where step.result_id = any (array(select result_id from waiting))
    and step.open
  for no key update skip locked
),
locked_waits as materialized (
  select step.result_id, step.sequence
  from byrote_steps as step
  where step.result_id = any (array(select result_id from waiting))
    and step.open
  except
  select * from open_steps
),
locked as (
  select result_id
  from locked_waits
  union all
  select run.result_id
  from byrote_dead as run
  where run.result_id = any (%(ids)s::uuid[])
    and run.shadow is not true
    and coalesce(%(was)s::text, 'FAILED') = 'FAILED'
    and run.result_id not in (select result_id from dead)
  union all
  select run.result_id
  from byrote_task_runs as run
  where run.result_id = any (%(ids)s::uuid[])
    and run.status = 'WAITING'
    and run.wait_reason in ('due', 'retry', 'snooze', 'sleep', 'event')
    and coalesce(%(was)s::text, 'WAITING') = 'WAITING'
    and run.result_id not in (select result_id from waiting)
),
deleted_dead as (
  delete from byrote_dead as run
  where run.result_id = any (array(select result_id from dead))
  returning run
),
requeued as (
  insert into byrote_task_runs
  select (live.run).*
  from (
    select byrote_requeued(run, (select now from clock)) as run
    from deleted_dead
    offset 0  -- One call for all columns.
  ) as live
  returning result_id, attempts, moves, queue_name
),
made_ready as (
  update byrote_task_runs as run
  set status = 'READY',
      wait_reason = null,
      rank = run.rank + byrote_micros((select now from clock)) - byrote_micros(run.run_after),
      run_after = (select now from clock),
      moves = run.moves + 1
  where run.result_id = any (array(select result_id from waiting except select result_id from locked_waits))
  returning run.result_id, run.attempts, run.moves, run.queue_name
),
closed_steps as (
  update byrote_steps as step
  set open = false
  from made_ready
  where step.result_id = made_ready.result_id
    and step.open
),
ready as (
  select *, 'FAILED' as was from requeued
  union all
  select *, 'WAITING' from made_ready
),
logged as (
  insert into byrote_events (at, kind, runs, attempts, moves, data)
  select
    (select now from clock), 'Revived', array_agg(result_id), array_agg(attempts), array_agg(moves),
    jsonb_object_agg(result_id, jsonb_build_object('was', was))
  from ready
  having count(*) > 0
)
select ready.result_id::text, 'READY' as status, (select byrote_wake(array(select queue_name from ready))) as notified
from ready
union all
select result_id::text, 'LOCKED', 0
from locked;
