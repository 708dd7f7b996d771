-- What lies in each queue, by task, as kept from the log; nothing before the first count.
-- The oldest ready run of each is looked for among those next in line in its queue.
with known as materialized (
  select queue_name, task_path, task_version, live - running as depth, running
  from byrote_depths
  where exists (select 1 from byrote_duties where duty = 'depths' and cursor is not null)
    and live > 0
    and (%(queues)s::text[] is null or queue_name = any (%(queues)s))
    and (%(tasks)s::text[] is null or task_path = any (%(tasks)s))
),
oldest as materialized (
  select queue.queue_name, line.task_path, line.task_version, min(line.run_after) as due
  from (select distinct queue_name from known where depth > 0) as queue
  cross join lateral (
    select run.task_path, run.task_version, run.run_after
    from byrote_task_runs as run
    where run.status = 'READY' and run.queue_name = queue.queue_name and run.shadow is not true
    order by run.rank
    limit %(most)s
  ) as line
  group by queue.queue_name, line.task_path, line.task_version
)
select
  known.queue_name, known.task_path, known.task_version, known.depth, known.running,
  extract(epoch from (select byrote_now()) - oldest.due)::float8 as oldest_ready_s
from known
left join oldest using (queue_name, task_path, task_version)
order by known.queue_name, known.task_path, known.task_version;
