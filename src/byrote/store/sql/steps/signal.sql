-- Store a signal for an unfinished run, and make the run READY at once if it waits for one of this name.
-- The sender chooses a signal's id: sent again after a lost answer, it is stored once.
-- The run's row is changed even if it is not waiting: a finish that is just making it wait must notice (finish.sql).
with clock as materialized (
  select byrote_now() as now
),
signalled as (
  update byrote_task_runs as run
  set (status, wait_reason, run_after, rank) = (
        select
          case when wait.ends then 'READY' else run.status end,
          case when wait.ends then null else run.wait_reason end,
          case when wait.ends then (select now from clock) else run.run_after end,
          case
            when wait.ends then run.rank + byrote_micros((select now from clock)) - byrote_micros(run.run_after)
            else run.rank
          end
        from (
          select run.wait_reason is not distinct from 'event' and byrote_awaits(run.result_id, %(event)s::text) as ends
          offset 0
        ) as wait
      ),
      moves = run.moves + 1
  where run.result_id = %(id)s::uuid
    and run.finished_at is null
  returning run.result_id, run.attempts, run.moves, run.queue_name, run.status
),
stored as (
  insert into byrote_signals (result_id, signal_id, at, name, payload_json, payload_hash)
  select result_id, %(signal)s::uuid, (select now from clock), %(event)s::text, %(payload)s::text, %(hash)s::bytea
  from signalled
  on conflict do nothing
),
logged as (
  insert into byrote_events (schema, at, kind, runs, attempts, moves, digests, data)
  select
    3, (select now from clock), 'Signalled', array[result_id], array[attempts], array[moves], array[%(hash)s::bytea],
    jsonb_build_object(result_id, jsonb_build_object('status', status, 'name', %(event)s::text))
  from signalled
)
select status, case when status = 'READY' then byrote_wake(array[queue_name]) end as notified
from signalled;
