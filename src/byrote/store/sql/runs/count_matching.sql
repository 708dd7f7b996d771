-- How many dead and unfinished runs match, by status, and the newest of their ids. Shadow runs and the archive are left out.
-- Dead runs match by the moment when they failed, unfinished ones by the moment when they were enqueued.
-- Reads runs of the wanted statuses only, by the partial index of each; dead ones by byrote_dead_by_queue, _by_task or _by_hash.
select run.status, count(*) as runs, max(run.result_id::text) as newest
from (
  select result_id, status, queue_name, task_path, spec_hash, labels, shadow, finished_at as since_at
  from byrote_dead
  where 'FAILED' = any (%(statuses)s::text[])
  union all
  select result_id, status, queue_name, task_path, spec_hash, labels, shadow, enqueued_at
  from byrote_task_runs
  where status = 'READY' and 'READY' = any (%(statuses)s::text[])
  union all
  select result_id, status, queue_name, task_path, spec_hash, labels, shadow, enqueued_at
  from byrote_task_runs
  where status = 'WAITING' and 'WAITING' = any (%(statuses)s::text[])
  union all
  select result_id, status, queue_name, task_path, spec_hash, labels, shadow, enqueued_at
  from byrote_task_runs
  where status = 'RUNNING' and 'RUNNING' = any (%(statuses)s::text[])
) as run
where (%(queue)s::text is null or run.queue_name = %(queue)s)
  and (%(task)s::text is null or run.task_path = %(task)s)
  and (%(hash)s::text is null or run.spec_hash = decode(%(hash)s, 'hex'))
  and (%(label)s::text is null or run.labels @> %(label)s::jsonb)
  and (%(queues)s::text[] is null or run.queue_name = any (%(queues)s))
  and (%(tasks)s::text[] is null or run.task_path = any (%(tasks)s))
  and run.shadow is not true
  and run.since_at >= coalesce(%(since)s::timestamptz, (select byrote_now()) - %(within)s::interval, '-infinity')
group by run.status
order by run.status;
