-- Whether anything in these queues is due that a worker may claim: a paused queue holds nobody up.
with open as materialized (
  select wanted.queue_name
  from unnest(%(queues)s::text[]) as wanted (queue_name)
  where not exists (
    select 1 from byrote_queues as queue
    where queue.queue_name = wanted.queue_name and queue.paused_at is not null
  )
)
select
  exists (
    select 1
    from byrote_task_runs as run
    join open using (queue_name)
    where run.status = 'READY'
      and run.task_path || '@' || run.task_version = any (%(tasks)s::text[])
  )
  or exists (
    select 1
    from byrote_task_runs as run
    join open using (queue_name)
    where run.status = 'WAITING'
      and run.run_after <= (select byrote_now())
      and run.task_path || '@' || run.task_version = any (%(tasks)s::text[])
  ) as unfinished;
