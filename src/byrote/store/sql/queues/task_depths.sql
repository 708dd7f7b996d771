-- The runs in each queue by task, as counted from the log; no rows before the first count.
-- The oldest ready run of each task is searched among the next `most` runs of its queue.
with counted as materialized (
  select queue_name, task_path, task_version, (sum(live) - sum(running))::bigint as depth, sum(running)::bigint as running
  from byrote_depths
  where exists (select 1 from byrote_duties where duty = 'depths' and cursor is not null)
    and (%(queues)s::text[] is null or queue_name = any (%(queues)s))
    and (%(tasks)s::text[] is null or task_path = any (%(tasks)s))
  group by queue_name, task_path, task_version
  having sum(live) > 0
),
oldest as materialized (
  select queue.queue_name, front.task_path, front.task_version, min(front.run_after) as due
  from (select distinct queue_name from counted where depth > 0) as queue
  cross join lateral (
    select run.task_path, run.task_version, run.run_after
    from byrote_task_runs as run
    where run.status = 'READY' and run.queue_name = queue.queue_name and run.shadow is not true
    order by run.rank
    limit %(most)s
  ) as front
  group by queue.queue_name, front.task_path, front.task_version
)
select
  counted.queue_name, counted.task_path, counted.task_version, counted.depth, counted.running,
  extract(epoch from (select byrote_now()) - oldest.due)::float8 as oldest_ready_s
from counted
left join oldest using (queue_name, task_path, task_version)
order by counted.queue_name, counted.task_path, counted.task_version;
