-- One run, in whichever table it is, and its progress if it has reported any.
select
  result_id::text, status, wait_reason, queue_name, task_path, task_version, priority, run_after, attempts, charged,
  losses, max_attempts, timeout_ms, spec_json, encode(spec_hash, 'hex') as spec_hash, return_json,
  encode(result_hash, 'hex') as result_hash, errors_json::text, retry_json, labels::text, worker_ids, leased_by,
  leased_until, cancel_requested_at, replay_of::text, traceparent, enqueued_at, started_at, last_attempted_at,
  finished_at, coalesce(as_of, enqueued_at) as as_of, provenance, usage::text, coalesce(shadow, false) as shadow,
  memo_of::text, unique_key, progress.*
from byrote_runs
left join (
  select attempt, percent, done, total, message, data_json, at, began_at, began_percent
  from byrote_progress
  where result_id = %(id)s::uuid
) as progress on true
where result_id = %(id)s::uuid;
