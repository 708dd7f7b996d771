-- Why a run waits: whether it is due, whether its queue is paused, and whether live workers serve the queue and know its
-- task.
with clock as materialized (
  select byrote_now() as now
),
live as materialized (
  select worker.queues, worker.tasks
  from byrote_workers as worker
  where worker.seen_at > (select now from clock) - interval '45 seconds'
)
select
  run.status, run.queue_name, run.task_path, run.task_version, run.wait_reason,
  case when run.status = 'WAITING' then run.run_after end as due,
  queue.paused_at is not null as paused,
  exists (select 1 from live where run.queue_name = any (live.queues)) as served,
  exists (
    select 1 from live
    where run.queue_name = any (live.queues)
      and run.task_path || '@' || run.task_version = any (live.tasks)
  ) as known,
  array(select distinct task from live cross join unnest(live.tasks) as named (task) order by task limit 1000) as tasks,
  queue.unserved_for
from byrote_task_runs as run
left join byrote_queues as queue using (queue_name)
where run.result_id = %(id)s::uuid;
