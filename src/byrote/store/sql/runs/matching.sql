-- The ids of the dead and unfinished runs that count_matching.sql counts, oldest first: those after `after`, up to `newest`.
-- Each batch goes on in the primary key where the last one ended, so that all batches together read a table once.
select run.result_id::text
from (
  (
    select run.result_id
    from byrote_dead as run
    where run.result_id > %(after)s::uuid
      and run.result_id <= %(newest)s::uuid
      and (%(queue)s::text is null or run.queue_name = %(queue)s)
      and (%(task)s::text is null or run.task_path = %(task)s)
      and (%(hash)s::text is null or run.spec_hash = decode(%(hash)s, 'hex'))
      and (%(label)s::text is null or run.labels @> %(label)s::jsonb)
      and (%(queues)s::text[] is null or run.queue_name = any (%(queues)s))
      and (%(tasks)s::text[] is null or run.task_path = any (%(tasks)s))
      and run.shadow is not true
      and 'FAILED' = any (%(statuses)s::text[])
      and run.finished_at >= coalesce(%(since)s::timestamptz, (select byrote_now()) - %(within)s::interval, '-infinity')
    order by run.result_id
    limit %(limit)s
  )
  union all
  (
    select run.result_id
    from byrote_task_runs as run
    where run.result_id > %(after)s::uuid
      and run.result_id <= %(newest)s::uuid
      and (%(queue)s::text is null or run.queue_name = %(queue)s)
      and (%(task)s::text is null or run.task_path = %(task)s)
      and (%(hash)s::text is null or run.spec_hash = decode(%(hash)s, 'hex'))
      and (%(label)s::text is null or run.labels @> %(label)s::jsonb)
      and (%(queues)s::text[] is null or run.queue_name = any (%(queues)s))
      and (%(tasks)s::text[] is null or run.task_path = any (%(tasks)s))
      and run.shadow is not true
      and array['WAITING', 'READY', 'RUNNING'] && %(statuses)s::text[]
      and run.status = any (%(statuses)s::text[])
      and run.status in ('WAITING', 'READY', 'RUNNING')
      and run.enqueued_at >= coalesce(%(since)s::timestamptz, (select byrote_now()) - %(within)s::interval, '-infinity')
    order by run.result_id
    limit %(limit)s
  )
) as run
order by run.result_id
limit %(limit)s;
