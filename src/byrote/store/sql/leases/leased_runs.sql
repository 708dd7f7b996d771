-- The facts that a verdict on runs under way depends on, by run and token.
with sent as materialized (
  select id, token
  from jsonb_to_recordset(%(leases)s::jsonb) as sent (id uuid, token uuid)
)
select
  run.result_id::text, run.queue_name, run.task_path, run.task_version, '{}' as spec_json, run.attempts, run.charged,
  run.losses, run.max_attempts, run.timeout_ms, run.retry_json, null as labels, run.traceparent, run.spec_hash, run.rank,
  greatest(byrote_micros((select byrote_now())) - byrote_micros(run.enqueued_at), 0) as age_us,
  byrote_micros(coalesce(run.as_of, run.enqueued_at)) as as_of_us
from sent
join byrote_task_runs as run on run.result_id = any (array[sent.id]) and run.lease_token = sent.token
where run.status || '' = 'RUNNING';  -- Keeps the partial index out: see finish.sql.
