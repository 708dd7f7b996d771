-- Queues and tasks at the front of the queues that a worker does not serve, so that it can discover them.
-- Walks byrote_ready_for_claim from one queue to the next, and reads the first 200 runs of each.
with recursive queue_names as (
  (
    select ready.queue_name
    from byrote_task_runs as ready
    where ready.status = 'READY'
    order by ready.queue_name
    limit 1
  )
  union all
  select (
    select ready.queue_name
    from byrote_task_runs as ready
    where ready.status = 'READY'
      and ready.queue_name > queue_names.queue_name
    order by ready.queue_name
    limit 1
  )
  from queue_names
  where queue_names.queue_name is not null
)
select distinct queue_names.queue_name, head.task_path, head.task_version
from queue_names
cross join lateral (
  select ready.task_path, ready.task_version
  from byrote_task_runs as ready
  where ready.status = 'READY'
    and ready.queue_name = queue_names.queue_name
  order by ready.rank
  limit 200
) as head
where queue_names.queue_name is not null
  and not (
    queue_names.queue_name = any (%(queues)s::text[])
    and head.task_path || '@' || head.task_version = any (%(tasks)s::text[])
  )
limit 100;
