-- Move runs that finished longer than `archive_after` ago from the hot table to the archive, in one bulk step from a
-- cursor on.
-- Shadow runs stay until they are pruned.
-- Walks the primary key, which is ordered by time: an index on finished rows would cost every run.
with clock as materialized (
  select byrote_now() as now, set_config('lock_timeout', '250ms', true)  -- Then archive_around.sql is sent.
),
page as materialized (
  select run.result_id, run.status, run.finished_at, run.queue_name, run.shadow
  from byrote_task_runs as run
  where run.result_id > %(after)s::uuid
  order by run.result_id
  limit %(limit)s
),
old as materialized (
  select page.result_id
  from page
  left join byrote_queues as queue using (queue_name)
  where page.finished_at < (select now from clock) - coalesce(queue.archive_after, interval '1 hour')
    and page.shadow is not true
),
moved as (
  delete from byrote_task_runs as run
  using old
  where run.result_id = any (array[old.result_id])
    and run.finished_at is not null
  returning run.*
),
archived as (
  insert into byrote_archive
  select * from moved
  returning 1
)
select
  (select count(*) from archived) as archived,
  (select count(*) from page) as seen,
  (select result_id::text from page order by result_id desc limit 1) as reached,
  (select result_id::text from old order by result_id desc limit 1) as last;
