-- Runs under way as progressing.sql returns them, for logins that may not see messages.
-- Served by byrote_progress_for_forget.
select
  progress.result_id::text, run.task_path, run.queue_name,
  progress.attempt, progress.percent, progress.done, progress.total, '', null, progress.at, progress.began_at,
  progress.began_percent
from (
  select result_id, attempt, percent, done, total, at, began_at, began_percent
  from byrote_progress
  order by began_at desc
  limit 1000
) as progress
join byrote_task_runs as run on run.result_id = progress.result_id
where run.status || '' = 'RUNNING'
  and run.attempts = progress.attempt
  and run.shadow is not true
  and (%(queues)s::text[] is null or run.queue_name = any (%(queues)s))
  and (%(tasks)s::text[] is null or run.task_path = any (%(tasks)s))
order by progress.began_at desc
limit %(limit)s;
