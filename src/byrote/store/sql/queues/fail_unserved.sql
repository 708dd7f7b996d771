-- End ready runs as FAILED whose task no live worker has known for as long as their queue waits (unserved_for).
-- Both the task's clock (note_unserved.sql) and the run itself must have waited that long; shadow runs and paused queues
-- are left alone. Uncharged: no attempt was made. Served by byrote_ready_for_claim; only where such a task is noted.
with clock as materialized (
  select byrote_now() as now
),
overdue as materialized (
  select entry.queue_name, entry.task_path, entry.task_version, queue.unserved_for
  from byrote_unserved as entry
  join byrote_queues as queue using (queue_name)
  where entry.waited >= queue.unserved_for
    and entry.seen_at > (select now from clock) - interval '1 minute'
    and queue.paused_at is null
    and not exists (
      select 1 from byrote_workers as worker
      where worker.seen_at > (select now from clock) - interval '45 seconds'
        and entry.queue_name = any (worker.queues)
        and entry.task_path || '@' || entry.task_version = any (worker.tasks)
    )
),
expired as materialized (
  select
    run.tid,
    jsonb_build_object(
      'kind', 'unknown_task', 'type', 'UnknownTask', 'attempt', run.attempts, 'at', (select now from clock),
      'message', format(
        'No live worker of the queue %%s knew %%s@%%s for %%s. Start one that does, with that name and version, then requeue.',
        overdue.queue_name, overdue.task_path, overdue.task_version, overdue.unserved_for
      )
    ) as error
  from overdue
  cross join lateral (
    select ready.ctid as tid, ready.attempts
    from byrote_task_runs as ready
    where ready.status = 'READY'
      and ready.queue_name = overdue.queue_name
      and ready.task_path = overdue.task_path
      and ready.task_version = overdue.task_version
      and ready.run_after <= (select now from clock) - overdue.unserved_for
      and ready.shadow is not true
    order by ready.rank
    limit %(limit)s
    for update skip locked
  ) as run
  limit %(limit)s
),
deleted as (
  delete from byrote_task_runs as run
  using expired
  where run.ctid = expired.tid
  returning run, expired.error
),
failed as (
  insert into byrote_dead
  select (dead.run).*
  from (
    select byrote_failed(run, (select now from clock), error) as run
    from deleted
    offset 0  -- One call for all columns.
  ) as dead
  returning result_id, attempts, moves, queue_name, task_path, task_version, errors_json -> -1 as error
),
logged as (
  insert into byrote_events (schema, at, kind, runs, attempts, moves, digests)
  select
    3, (select now from clock), 'Failed', array_agg(result_id), array_agg(attempts), array_agg(moves),
    array_agg(byrote_error_hash(error))
  from failed
  having count(*) > 0
)
select result_id::text, queue_name, task_path, task_version, attempts
from failed;
