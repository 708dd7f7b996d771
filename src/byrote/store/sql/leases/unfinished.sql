-- The rest of these queues: whether a worker that drains them must stay, how many runs other workers execute at this
-- moment, how many ready runs are of other tasks and of which, how many runs of paused queues are ready or due, and how
-- many are not due. A run whose lease has expired keeps the worker, whatever its task:
-- the sweep makes it READY. Other runs of a paused queue do not keep it.
with open as materialized (
  select requested.queue_name
  from unnest(%(queues)s::text[]) as requested (queue_name)
  where not exists (
    select 1 from byrote_queues as queue
    where queue.queue_name = requested.queue_name and queue.paused_at is not null
  )
),
remaining as materialized (
  select
    exists (
      select 1
      from byrote_task_runs as run
      join open using (queue_name)
      where run.status = 'READY'
        and run.task_path || '@' || run.task_version = any (%(tasks)s::text[])
    )
    or exists (
      select 1
      from byrote_task_runs as run
      join open using (queue_name)
      where run.status = 'WAITING'
        and run.run_after <= (select byrote_now())
        and run.task_path || '@' || run.task_version = any (%(tasks)s::text[])
    )
    or exists (
      select 1
      from byrote_task_runs as run
      where run.status = 'RUNNING'
        and run.leased_until <= (select byrote_now())
        and run.queue_name = any (%(queues)s::text[])
    ) as due
)
select
  remaining.due,
  case when remaining.due then 0 else (
    select count(*)
    from byrote_task_runs as run
    where run.status = 'RUNNING'
      and run.queue_name = any (%(queues)s::text[])
  ) end as elsewhere,
  case when remaining.due then 0 else (
    select count(*)
    from byrote_task_runs as run
    join open using (queue_name)
    where run.status = 'READY'
      and run.task_path || '@' || run.task_version <> all (%(tasks)s::text[])
  ) end as unknown,
  case when remaining.due then 0 else (
    select count(*)
    from byrote_task_runs as run
    where run.queue_name = any (%(queues)s::text[])
      and run.queue_name not in (select queue_name from open)
      and (run.status = 'READY' or run.status = 'WAITING' and run.run_after <= (select byrote_now()))
  ) end as paused,
  case when remaining.due then 0 else (
    select count(*)
    from byrote_task_runs as run
    where run.status = 'WAITING'
      and run.run_after > (select byrote_now())
      and run.queue_name = any (%(queues)s::text[])
  ) end as later,
  case when remaining.due then '{}' else array(
    select distinct run.task_path || '@' || run.task_version as task
    from byrote_task_runs as run
    join open using (queue_name)
    where run.status = 'READY'
      and run.task_path || '@' || run.task_version <> all (%(tasks)s::text[])
    order by task
    limit 5
  ) end as tasks
from remaining;
