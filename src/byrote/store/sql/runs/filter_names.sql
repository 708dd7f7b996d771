-- Names of queues and tasks to filter a list by: those that workers serve, of dead letters, and of the latest runs.
-- Not every name that ever existed: no table has those, and finding them would read every run.
with recursive dead_tasks as (
  (
    select task_path
    from byrote_dead
    order by task_path
    limit 1
  )
  union all
  select (
    select run.task_path
    from byrote_dead as run
    where run.task_path > last.task_path
    order by run.task_path
    limit 1
  )
  from dead_tasks as last
  where last.task_path is not null
),
dead_queues as (
  (
    select queue_name
    from byrote_dead
    order by queue_name
    limit 1
  )
  union all
  select (
    select run.queue_name
    from byrote_dead as run
    where run.queue_name > last.queue_name
    order by run.queue_name
    limit 1
  )
  from dead_queues as last
  where last.queue_name is not null
),
latest as materialized (
  select queue_name, task_path
  from byrote_runs
  order by result_id desc
  limit 1000
),
names as (
  select 'queue' as kind, queue_name as name from latest
  union
  select 'queue', queue_name from byrote_queues
  union
  select 'queue', unnest(queues) from byrote_workers
  union
  select 'queue', queue_name from dead_queues where queue_name is not null
  union
  select 'task', task_path from latest
  union
  select 'task', task_path from dead_tasks where task_path is not null
)
select kind, name
from names
where kind = 'task' or not starts_with(name, 'byrote.shadow.')
order by kind, name
limit %(limit)s;
