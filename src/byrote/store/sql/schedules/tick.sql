-- Move schedules that are due on to their next tick, and accept a run for each tick that is to have one.
-- A schedule that has been moved on, paused or changed since it was read is left alone, so no tick is enqueued twice.
-- A tick has no run if an unfinished run holds its unique key.
with clock as materialized (
  select byrote_now() as now
),
due as materialized (
  select schedule.*, turn.following
  from jsonb_to_recordset(%(turns)s::jsonb) as turn (schedule text, expected timestamptz, following timestamptz)
  join byrote_periodic_tasks as schedule on schedule.name = turn.schedule
  where schedule.next_at = turn.expected
    and schedule.paused_at is null
  order by schedule.name
  -- A schedule that another transaction has locked is still due at the next call.
  for update of schedule skip locked
),
ticks as materialized (
  select
    due.*, tick.id, tick.at, tick.run_after, clock.now,
    coalesce(byrote_micros(clock.now + queue.ageing) - byrote_micros(clock.now), 10000000000000) as ageing_us
  from clock
  cross join due
  join jsonb_to_recordset(%(ticks)s::jsonb) as tick (schedule text, id uuid, at timestamptz, run_after timestamptz)
    on tick.schedule = due.name
  left join byrote_queues as queue on queue.queue_name = due.queue_name
),
accepted as (
  insert into byrote_task_runs (
    result_id, queue_name, task_path, task_version, spec_json, spec_hash, priority, run_after, rank,
    status, wait_reason, enqueued_at, max_attempts, timeout_ms, retry_json, labels, unique_key
  )
  select
    id, queue_name, task_path, task_version, spec_json, spec_hash, priority, run_after,
    byrote_micros(run_after) - priority * ageing_us,
    case when run_after > now then 'WAITING' else 'READY' end,
    case when run_after > now then 'due' end,
    now, max_attempts, timeout_ms, retry_json,
    coalesce(labels, '{}') || jsonb_build_object(
      'schedule', name, 'tick', to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
    ),
    unique_key
  from ticks
  order by unique_key, task_path, at
  on conflict do nothing
  returning result_id, queue_name, status, run_after, spec_hash
),
moved as (
  update byrote_periodic_tasks as schedule
  set next_at = due.following,
      last_at = coalesce(made.last_at, schedule.last_at),
      last_run = coalesce(made.last_run, schedule.last_run),
      runs = schedule.runs + coalesce(made.runs, 0),
      skipped = schedule.skipped + coalesce(made.skipped, 0)
  from due
  left join (
    select
      ticks.name,
      count(accepted.result_id) as runs,
      count(*) - count(accepted.result_id) as skipped,
      max(ticks.at) filter (where accepted.result_id is not null) as last_at,
      (array_agg(accepted.result_id order by ticks.at desc) filter (where accepted.result_id is not null))[1] as last_run
    from ticks
    left join accepted on accepted.result_id = ticks.id
    group by ticks.name
  ) as made on made.name = due.name
  where schedule.name = due.name
),
logged as (
  insert into byrote_events (schema, at, kind, runs, attempts, moves, digests, data)
  select
    3, (select now from clock), 'Enqueued', array_agg(result_id),
    array_fill(0, array[count(*)::integer]), array_fill(1, array[count(*)::integer]), array_agg(spec_hash),
    jsonb_object_agg(result_id, jsonb_build_object('run_after', run_after)) filter (where status = 'WAITING')
  from accepted
  having count(*) > 0
)
select
  ticks.name, ticks.at, ticks.id::text, accepted.result_id is not null as made,
  (
    select byrote_wake(array(select queue_name from accepted where status = 'READY'), now - interval '1 minute')
    from clock
  ) as notified
from ticks
left join accepted on accepted.result_id = ticks.id
order by ticks.at, ticks.name;
