-- How many dead and unfinished runs match, by status, and the newest of their ids. Shadow runs and the archive are left out.
-- Dead runs match by the moment when they failed, unfinished ones by the moment when they were enqueued.
with matching as (
  select run.result_id, run.status
  from byrote_dead as run
  where (%(queue)s::text is null or run.queue_name = %(queue)s)
    and (%(task)s::text is null or run.task_path = %(task)s)
    and (%(hash)s::text is null or run.spec_hash = decode(%(hash)s, 'hex'))
    and (%(label)s::text is null or run.labels @> %(label)s::jsonb)
    and (%(queues)s::text[] is null or run.queue_name = any (%(queues)s))
    and (%(tasks)s::text[] is null or run.task_path = any (%(tasks)s))
    and run.shadow is not true
    and 'FAILED' = any (%(statuses)s::text[])
    and (
      coalesce(%(since)s::timestamptz, (select byrote_now()) - %(within)s::interval) is null
      or run.finished_at >= coalesce(%(since)s::timestamptz, (select byrote_now()) - %(within)s::interval)
    )
  union all
  select run.result_id, run.status
  from byrote_task_runs as run
  where (%(queue)s::text is null or run.queue_name = %(queue)s)
    and (%(task)s::text is null or run.task_path = %(task)s)
    and (%(hash)s::text is null or run.spec_hash = decode(%(hash)s, 'hex'))
    and (%(label)s::text is null or run.labels @> %(label)s::jsonb)
    and (%(queues)s::text[] is null or run.queue_name = any (%(queues)s))
    and (%(tasks)s::text[] is null or run.task_path = any (%(tasks)s))
    and run.shadow is not true
    and run.status = any (%(statuses)s::text[])
    and run.status in ('WAITING', 'READY', 'RUNNING')
    and (
      coalesce(%(since)s::timestamptz, (select byrote_now()) - %(within)s::interval) is null
      or run.enqueued_at >= coalesce(%(since)s::timestamptz, (select byrote_now()) - %(within)s::interval)
    )
)
select status, count(*) as runs, max(result_id::text) as newest
from matching
group by status
order by status;
