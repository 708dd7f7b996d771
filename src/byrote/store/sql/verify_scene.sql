-- What must be known of the whole database to judge one run.
with clock as materialized (
  select byrote_now() as now
),
days as (
  select min(to_date(right(child.relname, 8), 'YYYYMMDD')) as oldest
  from pg_inherits
  join pg_class as child on child.oid = inhrelid
  where inhparent = 'byrote_events'::regclass
    and child.relname ~ '^byrote_events_[0-9]{8}$'
)
select
  (select now from clock) as now,
  least(
    (select oldest::timestamp at time zone 'UTC' from days),
    (select min(at) from byrote_events_rest),
    (select now from clock)
  ) as horizon,
  exists (
    select 1 from byrote_workers where seen_at > (select now from clock) - interval '45 seconds' and not stopping
  ) as alive,
  (
    select coalesce(jsonb_object_agg(queue_name, byrote_micros(quiet_since)), '{}')
    from byrote_queues
    where quiet_since is not null
  )::text as quiet,
  (select now from clock) - coalesce(least((select min(keep_done) from byrote_queues), interval '30 days'), '30 days')
    as done_since,
  (select now from clock) - coalesce(least((select min(keep_dead) from byrote_queues), interval '90 days'), '90 days')
    as dead_since,
  (select count(*) from byrote_runs) as runs;
