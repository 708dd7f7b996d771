-- The ids of the dead and unfinished runs that count_matching.sql counts, oldest first: those after `after`, up to `newest`.
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
select result_id::text
from matching
where result_id > %(after)s::uuid
  and result_id <= %(newest)s::uuid
order by matching.result_id
limit %(limit)s;
