-- Correct the depths from the rows themselves: the first time, and then while there are few runs.
-- Depths are as of the position up to which events are counted. So the changes of later events, which the rows include
-- already, are subtracted. If the position has moved meanwhile, nothing is written.
-- Parts that another transaction has locked stay as they are: another part makes up the difference.
with position as materialized (
  select cursor
  from byrote_duties
  where duty = 'stats'
    and cursor = %(cursor)s
  for update
),
permitted as materialized (
  select 1
  from position
  where (select cursor from byrote_duties where duty = 'depths') is null
    or (select coalesce(sum(live), 0) from byrote_depths) <= %(most)s
),
counted as materialized (
  select queue_name, task_path, task_version, 1 as live, case when status = 'RUNNING' then 1 else 0 end as running
  from byrote_task_runs
  where exists (select 1 from permitted)
    and status in ('WAITING', 'READY', 'RUNNING')
    and shadow is not true
  union all
  select
    run.queue_name, run.task_path, run.task_version,
    -byrote_live_change(event.kind, event.data -> (id::text)), -byrote_running_change(event.kind, event.worker)
  from byrote_events as event
  cross join lateral unnest(event.runs) as id
  cross join lateral (
    select queue_name, task_path, task_version
    from byrote_runs
    where result_id = id
      and shadow is not true
    limit 1
  ) as run
  where exists (select 1 from permitted)
    and (event.xid, event.seq) > (%(xid)s::text::xid8, %(seq)s::bigint)
),
totals as materialized (
  select queue_name, task_path, task_version, sum(live) as live, sum(running) as running
  from counted
  group by queue_name, task_path, task_version
  having sum(live) <> 0 or sum(running) <> 0
),
free as materialized (
  select queue_name, task_path, task_version, part
  from byrote_depths
  where exists (select 1 from permitted)
  for update skip locked
),
locked as materialized (
  select depth.queue_name, depth.task_path, depth.task_version, depth.part, depth.live, depth.running
  from byrote_depths as depth
  left join free using (queue_name, task_path, task_version, part)
  where exists (select 1 from permitted)
    and free.part is null
),
parts as (
  select queue_name, task_path, task_version, live, running, 0 as next_part from totals
  union all
  select queue_name, task_path, task_version, -live, -running, part + 1 from locked
),
rest as materialized (
  select
    queue_name, task_path, task_version, sum(live) as live, sum(running) as running,
    coalesce(
      (
        select min(free.part)
        from free
        where (free.queue_name, free.task_path, free.task_version)
          = (parts.queue_name, parts.task_path, parts.task_version)
      ),
      max(next_part)
    ) as part
  from parts
  group by queue_name, task_path, task_version
  having sum(live) <> 0 or sum(running) <> 0
),
written as (
  insert into byrote_depths (queue_name, task_path, task_version, part, live, running)
  select queue_name, task_path, task_version, part, live, running
  from rest
  on conflict (queue_name, task_path, task_version, part) do update
  set live = excluded.live,
      running = excluded.running
),
emptied as (
  delete from byrote_depths as depth
  using free
  where (free.queue_name, free.task_path, free.task_version, free.part)
    = (depth.queue_name, depth.task_path, depth.task_version, depth.part)
    and not exists (
      select 1
      from rest
      where (rest.queue_name, rest.task_path, rest.task_version, rest.part)
        = (depth.queue_name, depth.task_path, depth.task_version, depth.part)
    )
),
begun as (
  update byrote_duties
  set cursor = 'counted'
  where duty = 'depths'
    and cursor is null
    and exists (select 1 from permitted)
)
select exists (select 1 from permitted) as done;
