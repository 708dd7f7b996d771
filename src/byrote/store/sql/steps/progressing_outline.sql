-- Runs under way as progressing.sql lists them, for logins that may see no messages.
-- Served by byrote_progress_for_forget.
select
  told.result_id::text, run.task_path, run.queue_name,
  told.attempt, told.percent, told.done, told.total, '', null, told.at, told.began_at, told.began_percent
from (
  select result_id, attempt, percent, done, total, at, began_at, began_percent
  from byrote_progress
  order by began_at desc
  limit 1000
) as told
join byrote_task_runs as run on run.result_id = told.result_id
where run.status || '' = 'RUNNING'
  and run.attempts = told.attempt
  and run.shadow is not true
  and (%(queues)s::text[] is null or run.queue_name = any (%(queues)s))
  and (%(tasks)s::text[] is null or run.task_path = any (%(tasks)s))
order by told.began_at desc
limit %(limit)s;
