-- Runs as run.sql and runs.sql return them, for logins that may not see arguments, results or errors: JSON's null for a
-- spec. Progress comes without its message.
select
  result_id::text, status, wait_reason, queue_name, task_path, task_version, priority, run_after, attempts, charged,
  losses, max_attempts, timeout_ms, 'null', encode(spec_hash, 'hex') as spec_hash, null,
  encode(result_hash, 'hex') as result_hash, null, null, labels::text, worker_ids, leased_by,
  leased_until, cancel_requested_at, replay_of::text, traceparent, enqueued_at, started_at, last_attempted_at,
  finished_at, coalesce(as_of, enqueued_at) as as_of, provenance, usage::text, coalesce(shadow, false) as shadow,
  memo_of::text, unique_key, progress.*
from byrote_runs
left join lateral (
  select attempt, percent, done, total, '', null, at, began_at, began_percent
  from byrote_progress
  where %(id)s::uuid is not null
    and result_id = %(id)s::uuid
) as progress on true
where (%(id)s::uuid is null or result_id = %(id)s::uuid)
  and (%(status)s::text is null or status = %(status)s)
  and (%(queue)s::text is null or queue_name = %(queue)s)
  and (%(task)s::text is null or task_path = %(task)s)
  and (%(hash)s::text is null or spec_hash = decode(%(hash)s, 'hex'))
  and (%(label)s::text is null or labels @> %(label)s::jsonb)
  and (%(queues)s::text[] is null or queue_name = any (%(queues)s))
  and (%(tasks)s::text[] is null or task_path = any (%(tasks)s))
  and (%(shadow)s::boolean or shadow is not true)
  and (
    coalesce(%(since)s::timestamptz, (select byrote_now()) - %(within)s::interval) is null
    or coalesce(finished_at, enqueued_at) >= coalesce(%(since)s::timestamptz, (select byrote_now()) - %(within)s::interval)
  )
  and (%(before)s::uuid is null or result_id < %(before)s::uuid)
order by byrote_runs.result_id desc  -- The column: the bare name would be the text above, which no index has.
limit %(limit)s;
