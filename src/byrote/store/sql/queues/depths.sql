-- Every queue with its runs by status, without shadow runs, counted up to a limit: no table is counted to its end.
-- The number of runs accepted and not begun comes from byrote_depths; null before the first count.
-- Waiting and running runs have no index by queue, so the first `most` of all queues are read.
-- The oldest ready run is searched among the next `most` runs of its queue: no index has it for a longer queue.
-- With tasks, only their runs are counted, among the same first ones, and only queues with any are returned.
with counted as materialized (
  select queue_name, sum(live - running)::bigint as depth
  from byrote_depths
  where exists (select 1 from byrote_duties where duty = 'depths' and cursor is not null)
    and (%(tasks)s::text[] is null or task_path = any (%(tasks)s))
  group by queue_name
),
names as materialized (
  select queue_name from byrote_queues
  union
  select queue_name from counted where depth > 0
  union
  select queue_name from (
    with recursive walked as (
      (
        select queue_name from byrote_task_runs
        where status = 'READY' and shadow is not true
        order by queue_name
        limit 1
      )
      union all
      select (
        select run.queue_name from byrote_task_runs as run
        where run.status = 'READY' and run.queue_name > walked.queue_name and run.shadow is not true
        order by run.queue_name
        limit 1
      )
      from walked
      where walked.queue_name is not null
    )
    select queue_name from walked where queue_name is not null
  ) as found
  union
  select queue_name from (
    with recursive walked as (
      (select queue_name from byrote_dead where shadow is not true order by queue_name limit 1)
      union all
      select (
        select dead.queue_name from byrote_dead as dead
        where dead.queue_name > walked.queue_name and dead.shadow is not true
        order by dead.queue_name
        limit 1
      )
      from walked
      where walked.queue_name is not null
    )
    select queue_name from walked where queue_name is not null
  ) as found
),
waiting as materialized (
  select queue_name, count(*) as runs
  from (
    select queue_name, task_path from byrote_task_runs where status = 'WAITING' and shadow is not true limit %(most)s
  ) as seen
  where %(tasks)s::text[] is null or task_path = any (%(tasks)s)
  group by queue_name
),
running as materialized (
  select queue_name, count(*) as runs
  from (
    select queue_name, task_path from byrote_task_runs where status = 'RUNNING' and shadow is not true limit %(most)s
  ) as seen
  where %(tasks)s::text[] is null or task_path = any (%(tasks)s)
  group by queue_name
),
listed as (
  select queue_name from names
  union
  select queue_name from waiting
  union
  select queue_name from running
)
select
  listed.queue_name,
  settings.paused_at,
  ready.runs as ready,
  coalesce(waiting.runs, 0) as waiting,
  coalesce(running.runs, 0) as running,
  dead.runs as dead,
  extract(epoch from (select byrote_now()) - ready.oldest)::float8 as oldest_ready_s,
  case when (select cursor from byrote_duties where duty = 'depths') is not null then coalesce(counted.depth, 0) end as depth
from listed
left join byrote_queues as settings using (queue_name)
left join waiting using (queue_name)
left join running using (queue_name)
left join counted using (queue_name)
cross join lateral (
  select count(*) as runs, min(front.run_after) as oldest
  from (
    select run.run_after, run.task_path from byrote_task_runs as run
    where run.status = 'READY' and run.queue_name = listed.queue_name and run.shadow is not true
    order by run.rank
    limit %(most)s
  ) as front
  where %(tasks)s::text[] is null or front.task_path = any (%(tasks)s)
) as ready
cross join lateral (
  select count(*) as runs
  from (
    select run.task_path from byrote_dead as run
    where run.queue_name = listed.queue_name and run.shadow is not true
    limit %(most)s
  ) as seen
  where %(tasks)s::text[] is null or seen.task_path = any (%(tasks)s)
) as dead
where (%(queues)s::text[] is null or listed.queue_name = any (%(queues)s))
  and (
    %(tasks)s::text[] is null
    or ready.runs + coalesce(waiting.runs, 0) + coalesce(running.runs, 0) + dead.runs + coalesce(counted.depth, 0) > 0
  )
order by listed.queue_name;
