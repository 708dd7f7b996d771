-- Count what prune.sql would delete now, by the same rules. For partitions that would be dropped: how many days, the
-- first and the last, and about how many rows they hold by the planner's estimate.
with clock as materialized (
  select byrote_now() as now
),
retention as materialized (
  -- A day is dropped as a whole, so the longest setting of a queue decides unless the caller does; byrote_retention has the
  -- minimum.
  select
    greatest(
      coalesce(%(keep_done)s::interval, max(keep_done), interval '30 days'),
      (select keep_min from byrote_retention where part = 'byrote_archive')
    ) as done,
    greatest(%(keep_events)s::interval, (select keep_min from byrote_retention where part = 'byrote_events')) as events,
    greatest(%(keep_events)s::interval, (select keep_min from byrote_retention where part = 'byrote_outputs')) as outputs
  from byrote_queues
),
horizons (part, parent, before) as (
  values
    ('done', 'byrote_archive', (select now from clock) - (select done from retention)),
    ('events', 'byrote_events', (select now from clock) - (select events from retention)),
    ('outputs', 'byrote_outputs', (select now from clock) - (select outputs from retention))
),
days as (
  select
    horizons.part, child.reltuples,
    -- The default partition has no day in its name.
    case when child.relname ~ '_[0-9]{8}$' then to_date(right(child.relname, 8), 'YYYYMMDD') end as day,
    (horizons.before at time zone 'UTC')::date as before
  from horizons
  join pg_inherits on pg_inherits.inhparent = format('%%I.%%I', byrote_home(), horizons.parent)::regclass
  join pg_class as child on child.oid = pg_inherits.inhrelid
),
dropped as (
  select part, count(*) as number, min(day) as first, max(day) as last, sum(greatest(reltuples, 0))::bigint as held
  from days
  where day + 1 <= before
  group by part
)
select horizons.part, coalesce(dropped.number, 0) as number, dropped.first, dropped.last, coalesce(dropped.held, 0) as held
from horizons
left join dropped using (part)
union all
select
  case when dead.shadow then 'shadows' else 'dead' end, count(*), null, null, count(*)
from byrote_dead as dead
where dead.finished_at < (select now from clock) - case
  when dead.shadow then %(keep_shadow)s::interval
  else coalesce(
    %(keep_dead)s::interval,
    (select queue.keep_dead from byrote_queues as queue where queue.queue_name = dead.queue_name),
    interval '90 days'
  )
end
group by 1
union all
select 'shadows', count(*), null, null, count(*)
from byrote_task_runs as run
where run.replay_of is not null
  and run.shadow
  and run.enqueued_at < (select now from clock) - %(keep_shadow)s::interval
union all
select 'workers', count(*), null, null, count(*)
from byrote_workers as worker
where worker.seen_at < (select now from clock) - %(keep_worker)s::interval;
