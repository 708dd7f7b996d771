-- Dead letters as dead.sql returns them, for logins that may not see errors.
select
  result_id::text, status, wait_reason, queue_name, task_path, task_version, priority, run_after, attempts, charged,
  losses, max_attempts, timeout_ms, 'null' as spec_json, encode(spec_hash, 'hex') as spec_hash, null as return_json,
  encode(result_hash, 'hex') as result_hash, null as errors_json, null as retry_json, labels::text, worker_ids, leased_by,
  leased_until, cancel_requested_at, replay_of::text, traceparent, enqueued_at, started_at, last_attempted_at,
  finished_at, coalesce(as_of, enqueued_at) as as_of, null as provenance, null as usage,
  coalesce(shadow, false) as shadow, memo_of::text, unique_key
from byrote_dead
where (%(queue)s::text is null or queue_name = %(queue)s)
  and (%(task)s::text is null or task_path = %(task)s)
  and (%(queues)s::text[] is null or queue_name = any (%(queues)s))
  and (%(tasks)s::text[] is null or task_path = any (%(tasks)s))
  and shadow is not true
  and (%(before)s::timestamptz is null or (finished_at, result_id) < (%(before)s::timestamptz, %(before_id)s::uuid))
order by finished_at desc, byrote_dead.result_id desc  -- The column, not the text above.
limit %(limit)s;
