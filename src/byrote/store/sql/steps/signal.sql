-- Keep a signal for a run that has not ended, and let the run go on at once if it waits for one of this name.
-- A signal's id is chosen by its sender: sent again after a lost answer, it is kept once.
-- The run's row is changed even when it is not waiting: a finish that is just making it wait must notice (finish.sql).
with clock as materialized (
  select byrote_now() as now
),
told_of as (
  update byrote_task_runs as run
  set (status, wait_reason, run_after, rank) = (
        select
          case when woken.up then 'READY' else run.status end,
          case when woken.up then null else run.wait_reason end,
          case when woken.up then (select now from clock) else run.run_after end,
          case
            when woken.up then run.rank + byrote_micros((select now from clock)) - byrote_micros(run.run_after)
            else run.rank
          end
        from (
          select run.wait_reason is not distinct from 'event' and byrote_awaits(run.result_id, %(event)s::text) as up
          offset 0
        ) as woken
      ),
      moves = run.moves + 1
  where run.result_id = %(id)s::uuid
    and run.finished_at is null
  returning run.result_id, run.attempts, run.moves, run.queue_name, run.status
),
kept as (
  insert into byrote_signals (result_id, signal_id, at, name, payload_json, payload_hash)
  select result_id, %(signal)s::uuid, (select now from clock), %(event)s::text, %(payload)s::text, %(hash)s::bytea
  from told_of
  on conflict do nothing
),
told as (
  insert into byrote_events (schema, at, kind, runs, attempts, moves, digests, data)
  select
    3, (select now from clock), 'Signalled', array[result_id], array[attempts], array[moves], array[%(hash)s::bytea],
    jsonb_build_object(result_id, jsonb_build_object('status', status, 'name', %(event)s::text))
  from told_of
),
woken as (
  select pg_notify('byrote_ready', queue_name)
  from told_of
  where status = 'READY'
    and exists (select 1 from byrote_workers as worker where worker.idle and told_of.queue_name = any (worker.queues))
)
select told_of.status, (select count(*) from woken) as woken
from told_of;
