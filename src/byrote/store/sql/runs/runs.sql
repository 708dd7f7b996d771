-- The newest runs that match, newest first; an absent filter is null. The columns of run.sql, without arguments, results
-- and what attempts used: JSON's null for a spec.
select
  result_id::text, status, wait_reason, queue_name, task_path, task_version, priority, run_after, attempts, charged,
  losses, max_attempts, timeout_ms, 'null' as spec_json, encode(spec_hash, 'hex') as spec_hash, null as return_json,
  encode(result_hash, 'hex') as result_hash, errors_json::text, null as retry_json, labels::text, worker_ids, leased_by,
  leased_until, cancel_requested_at, replay_of::text, traceparent, enqueued_at, started_at, last_attempted_at,
  finished_at, coalesce(as_of, enqueued_at) as as_of, null as provenance, null as usage,
  coalesce(shadow, false) as shadow, memo_of::text, unique_key
from byrote_runs
where (%(status)s::text is null or status = %(status)s)
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
