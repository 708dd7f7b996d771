-- Add events after a cursor to the counts by minute and to the depths, and move the cursor, all or nothing: of two
-- statements that count at the same time one finds the cursor moved and adds nothing. Returns how many events were
-- read, and the new cursor, in the form of core/log/cursor.py.
-- A row that another transaction has locked is not waited for: another part of the same count is added to, or begun.
with page as materialized (
  select event.xid, event.seq, event.at, event.kind, event.worker, event.runs, event.data
  from byrote_events as event
  where (event.xid, event.seq) > (%(xid)s::text::xid8, %(seq)s::bigint)
    and event.xid < (select byrote_stable_xid())
  order by event.xid, event.seq
  limit %(limit)s
),
reached as materialized (
  select xid, seq from page order by xid desc, seq desc limit 1
),
moved as (
  update byrote_duties as duty
  set cursor = reached.xid::text || '.' || reached.seq
  from reached
  where duty.duty = 'stats'
    and duty.cursor is not distinct from %(cursor)s
  returning duty.cursor
),
entries as materialized (
  select
    date_trunc('minute', page.at) as minute, page.at, page.kind, page.data -> (id::text) ->> 'type' as error,
    byrote_live_change(page.kind, page.data -> (id::text)) as live, byrote_running_change(page.kind, page.worker) as running,
    run.queue_name, run.task_path, run.task_version, run.run_after, run.last_attempted_at
  from moved
  cross join page
  cross join lateral unnest(page.runs) as id
  cross join lateral (
    select queue_name, task_path, task_version, run_after, last_attempted_at
    from byrote_runs
    where result_id = id
      and shadow is not true
    limit 1
  ) as run
  where page.kind <> 'Renewed'
),
counted as (
  select minute, queue_name, task_path, task_version, kind as measure, 0::smallint as bucket
  from entries
  where kind in ('Enqueued', 'Succeeded', 'Retried', 'Failed', 'Cancelled', 'Lost', 'Crashed')
  union all
  select minute, queue_name, task_path, task_version, 'error ' || left(error, 200), 0
  from entries
  where error is not null
  union all
  select minute, queue_name, task_path, task_version, 'wait', byrote_bucket(last_attempted_at - run_after)
  from entries
  where kind in ('Succeeded', 'Failed') and last_attempted_at is not null
  union all
  select minute, queue_name, task_path, task_version, 'run', byrote_bucket(at - last_attempted_at)
  from entries
  where kind in ('Succeeded', 'Failed', 'Retried') and last_attempted_at is not null
),
totals as materialized (
  select minute, queue_name, task_path, task_version, measure, bucket, count(*) as n
  from counted
  group by minute, queue_name, task_path, task_version, measure, bucket
),
added as (
  insert into byrote_stats as stats (minute, queue_name, task_path, task_version, measure, bucket, part, n)
  select
    totals.minute, totals.queue_name, totals.task_path, totals.task_version, totals.measure, totals.bucket,
    coalesce(
      free.part,
      (
        select max(taken.part) + 1
        from byrote_stats as taken
        where (taken.minute, taken.queue_name, taken.task_path, taken.task_version, taken.measure, taken.bucket)
          = (totals.minute, totals.queue_name, totals.task_path, totals.task_version, totals.measure, totals.bucket)
      ),
      0
    ),
    totals.n
  from totals
  left join lateral (
    select known.part
    from byrote_stats as known
    where (known.minute, known.queue_name, known.task_path, known.task_version, known.measure, known.bucket)
      = (totals.minute, totals.queue_name, totals.task_path, totals.task_version, totals.measure, totals.bucket)
    order by known.part
    limit 1
    for no key update skip locked
  ) as free on true
  on conflict (minute, queue_name, task_path, task_version, measure, bucket, part) do update
  set n = stats.n + excluded.n
),
changes as materialized (
  select queue_name, task_path, task_version, sum(live) as live, sum(running) as running
  from entries
  group by queue_name, task_path, task_version
  having sum(live) <> 0 or sum(running) <> 0
),
updated_depths as (
  insert into byrote_depths as depth (queue_name, task_path, task_version, part, live, running)
  select
    changes.queue_name, changes.task_path, changes.task_version,
    coalesce(
      free.part,
      (
        select max(taken.part) + 1
        from byrote_depths as taken
        where (taken.queue_name, taken.task_path, taken.task_version)
          = (changes.queue_name, changes.task_path, changes.task_version)
      ),
      0
    ),
    changes.live, changes.running
  from changes
  left join lateral (
    select known.part
    from byrote_depths as known
    where (known.queue_name, known.task_path, known.task_version)
      = (changes.queue_name, changes.task_path, changes.task_version)
    order by known.part
    limit 1
    for no key update skip locked
  ) as free on true
  on conflict (queue_name, task_path, task_version, part) do update
  set live = depth.live + excluded.live,
      running = depth.running + excluded.running
)
select (select count(*) from page) as events, (select cursor from moved) as cursor;
