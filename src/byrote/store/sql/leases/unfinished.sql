-- What is left in these queues: whether a worker that drains them has to stay, what other workers execute at this
-- moment, and how many ready runs are of other tasks. A run whose lease has expired keeps the worker, whatever its task:
-- the sweep makes it READY. A paused queue's other runs keep no worker.
with open as materialized (
  select wanted.queue_name
  from unnest(%(queues)s::text[]) as wanted (queue_name)
  where not exists (
    select 1 from byrote_queues as queue
    where queue.queue_name = wanted.queue_name and queue.paused_at is not null
  )
),
kept as materialized (
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
  kept.due,
  case when kept.due then 0 else (
    select count(*)
    from byrote_task_runs as run
    where run.status = 'RUNNING'
      and run.queue_name = any (%(queues)s::text[])
  ) end as elsewhere,
  case when kept.due then 0 else (
    select count(*)
    from byrote_task_runs as run
    join open using (queue_name)
    where run.status = 'READY'
      and run.task_path || '@' || run.task_version <> all (%(tasks)s::text[])
  ) end as unknown
from kept;
