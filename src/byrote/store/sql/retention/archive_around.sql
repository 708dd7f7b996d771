-- Archive like archive.sql, around rows that another transaction has locked: those stay until the next walk.
-- Locking each row before its deletion costs nearly as much again, so this is only sent after archive.sql met a locked
-- row.
with clock as materialized (
  select byrote_now() as now
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
  where run.ctid = any (array(
    select done.ctid
    from old
    join byrote_task_runs as done on done.result_id = any (array[old.result_id])
    where done.finished_at is not null
    -- Rows that another transaction has locked stay until the next walk.
    for update of done skip locked
  ))
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
