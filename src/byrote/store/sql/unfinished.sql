-- How much is left to do now in these queues, for a worker that drains: due, or running somewhere.
select
  exists (
    select 1 from byrote_task_runs
    where status = 'READY' and queue_name = any (%(queues)s::text[])
      and task_path || '@' || task_version = any (%(tasks)s::text[])
  )
  or exists (
    select 1 from byrote_task_runs
    where status = 'WAITING' and run_after <= (select byrote_now()) and queue_name = any (%(queues)s::text[])
  ) as unfinished;
