-- The runs that a claim leased, by its token. Sent after the answer to the claim was lost.
-- Served by byrote_leased_for_sweep: only running rows are read.
select
  result_id::text, queue_name, task_path, task_version, spec_json, attempts, charged, losses, max_attempts,
  timeout_ms, retry_json, labels::text, traceparent, spec_hash, rank,
  greatest(byrote_micros((select byrote_now())) - byrote_micros(enqueued_at), 0) as age_us,
  byrote_micros(coalesce(as_of, enqueued_at)) as as_of_us
from byrote_task_runs
where status = 'RUNNING'
  and leased_until > (select byrote_now())
  and lease_token = %(token)s::uuid
  and leased_by = %(worker)s
order by rank;
