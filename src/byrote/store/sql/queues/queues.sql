-- Every queue with its unfinished and dead runs, without shadow runs. Counts read the partial indexes, never the finished
-- rows.
with live as (
  select queue_name, status, count(*) as runs, min(run_after) as oldest
  from byrote_task_runs
  where status in ('READY', 'WAITING', 'RUNNING')
    and shadow is not true
  group by queue_name, status
),
dead as (
  select queue_name, count(*) as runs
  from byrote_dead
  where shadow is not true
  group by queue_name
),
names as (
  select queue_name from byrote_queues
  union
  select queue_name from live
  union
  select queue_name from dead
)
select
  names.queue_name,
  settings.paused_at,
  coalesce(sum(live.runs) filter (where live.status = 'READY'), 0)::bigint as ready,
  coalesce(sum(live.runs) filter (where live.status = 'WAITING'), 0)::bigint as waiting,
  coalesce(sum(live.runs) filter (where live.status = 'RUNNING'), 0)::bigint as running,
  coalesce(min(dead.runs), 0)::bigint as dead,
  extract(epoch from (select byrote_now()) - min(live.oldest) filter (where live.status = 'READY'))::float8
    as oldest_ready_s,
  coalesce(sum(live.runs) filter (where live.status in ('READY', 'WAITING')), 0)::bigint as depth
from names
left join byrote_queues as settings using (queue_name)
left join live using (queue_name)
left join dead using (queue_name)
group by names.queue_name, settings.paused_at
order by names.queue_name;
