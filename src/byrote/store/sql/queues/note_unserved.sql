-- Note which tasks at the front of the queues no live worker knows, though one serves their queue; returns the new ones.
-- The clock of each runs only while that is observed, by a minute at most from one check to the next, so that a night
-- without workers does not count. A worker that knows the task, or executes a run of it, resets it.
-- Walks byrote_ready_for_claim from one queue to the next, and reads the first `depth` runs of each.
with recursive clock as materialized (
  select byrote_now() as now
),
live as materialized (
  select worker.queues, worker.tasks
  from byrote_workers as worker
  where worker.seen_at > (select now from clock) - interval '45 seconds'
),
queue_names as (
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
),
front as materialized (
  select queue_names.queue_name, head.task_path, head.task_version, count(*) as runs
  from queue_names
  cross join lateral (
    select ready.task_path, ready.task_version, ready.shadow
    from byrote_task_runs as ready
    where ready.status = 'READY'
      and ready.queue_name = queue_names.queue_name
    order by ready.rank
    limit %(depth)s
  ) as head
  where queue_names.queue_name is not null
    and head.shadow is not true
  group by queue_names.queue_name, head.task_path, head.task_version
),
unknown as materialized (
  select front.queue_name, front.task_path, front.task_version, front.runs
  from front
  where exists (select 1 from live where front.queue_name = any (live.queues))
    and not exists (
      select 1 from live
      where front.queue_name = any (live.queues)
        and front.task_path || '@' || front.task_version = any (live.tasks)
    )
    and not exists (
      select 1 from byrote_queues as queue
      where queue.queue_name = front.queue_name and queue.paused_at is not null
    )
    and not exists (
      select 1 from byrote_task_runs as run
      where run.status = 'RUNNING'
        and run.leased_until > (select now from clock)
        and run.queue_name = front.queue_name
        and run.task_path = front.task_path
        and run.task_version = front.task_version
    )
),
-- A row that another transaction has locked keeps its clock until the next check.
free as materialized (
  select entry.ctid as tid, entry.queue_name, entry.task_path, entry.task_version
  from byrote_unserved as entry
  for update skip locked
),
observed as (
  update byrote_unserved as entry
  set seen_at = (select now from clock),
      waited = entry.waited + least(greatest((select now from clock) - entry.seen_at, interval '0'), interval '1 minute')
  from free
  join unknown using (queue_name, task_path, task_version)
  where entry.ctid = free.tid
),
noted as (
  insert into byrote_unserved as entry (queue_name, task_path, task_version, since, seen_at)
  select queue_name, task_path, task_version, (select now from clock), (select now from clock)
  from unknown
  on conflict (queue_name, task_path, task_version) do nothing
  returning entry.queue_name, entry.task_path, entry.task_version, entry.since, entry.waited
),
served as (
  delete from byrote_unserved as entry
  where entry.ctid = any (array(select tid from free))
    and (entry.queue_name, entry.task_path, entry.task_version) not in (
      select queue_name, task_path, task_version from unknown
    )
    and (
      entry.seen_at < (select now from clock) - interval '30 days'
      or exists (
        select 1 from live
        where entry.queue_name = any (live.queues)
          and entry.task_path || '@' || entry.task_version = any (live.tasks)
      )
      or exists (
        select 1 from byrote_task_runs as run
        where run.status = 'RUNNING'
          and run.leased_until > (select now from clock)
          and run.queue_name = entry.queue_name
          and run.task_path = entry.task_path
          and run.task_version = entry.task_version
      )
    )
)
select
  noted.queue_name, noted.task_path, noted.task_version, noted.since, extract(epoch from noted.waited)::float8 as waited_s,
  array(select distinct task from live cross join unnest(live.tasks) as known (task) order by task limit 1000) as known,
  null::interval as unserved_for, unknown.runs
from noted
join unknown using (queue_name, task_path, task_version)
where noted.since = (select now from clock)
order by noted.queue_name, noted.task_path, noted.task_version;
