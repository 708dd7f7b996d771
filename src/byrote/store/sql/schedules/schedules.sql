-- Periodic tasks by name: all, one, or those that are due, the longest due first.
-- Served by byrote_periodic_for_beat with `due`.
select
  name, timing, zone, task_path, task_version, spec_json, encode(spec_hash, 'hex'), queue_name, priority, max_attempts,
  timeout_ms, retry_json, labels::text, unique_key, jitter_us, catch_up,
  case when code_hash is null then 'hand' else 'code' end, next_at, last_at, last_run::text, runs, skipped, paused_at,
  fault, changed_at, (select byrote_now())
from byrote_periodic_tasks
where (%(name)s::text is null or name = %(name)s)
  and (
    not %(due)s::boolean
    or (paused_at is null and next_at <= (select byrote_now()))
  )
order by case when %(due)s::boolean then next_at end, name
limit %(limit)s;
