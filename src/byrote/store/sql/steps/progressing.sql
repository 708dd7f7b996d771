-- Runs under way that tell how far they are, the latest to begin first; looked for among the last thousand that told.
-- Served by byrote_progress_for_forget.
select
  told.result_id::text, run.task_path, run.queue_name,
  told.attempt, told.percent, told.done, told.total, told.message, told.data_json, told.at, told.began_at, told.began_percent
from (
  select *
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
