-- Store a periodic task, new or changed, and when it is due next. Its record of past ticks stays.
-- For an app (with `code`), only if its definition differs from before; by hand, only if it is new or may be replaced.
insert into byrote_periodic_tasks (
  name, timing, zone, task_path, task_version, spec_json, spec_hash, queue_name, priority, max_attempts, timeout_ms,
  retry_json, labels, unique_key, jitter_us, catch_up, next_at, created_at, changed_at, code_hash
)
select
  %(name)s::text, %(timing)s::text, %(zone)s::text, %(task)s::text, %(version)s::integer, %(spec_json)s::text,
  %(hash)s::bytea, %(queue)s::text, %(priority)s::smallint, %(max_attempts)s::integer, %(timeout_ms)s::bigint,
  %(retry_json)s::text, %(labels)s::jsonb, %(unique_key)s::text, %(jitter_us)s::bigint, %(catch_up)s::text,
  %(next_at)s::timestamptz, clock.now, clock.now, %(code)s::text
from (select byrote_now() as now offset 0) as clock
on conflict (name) do update
set timing = excluded.timing,
    zone = excluded.zone,
    task_path = excluded.task_path,
    task_version = excluded.task_version,
    spec_json = excluded.spec_json,
    spec_hash = excluded.spec_hash,
    queue_name = excluded.queue_name,
    priority = excluded.priority,
    max_attempts = excluded.max_attempts,
    timeout_ms = excluded.timeout_ms,
    retry_json = excluded.retry_json,
    labels = excluded.labels,
    unique_key = excluded.unique_key,
    jitter_us = excluded.jitter_us,
    catch_up = excluded.catch_up,
    -- The same moments as before: a change of another field must not drop a tick that is due or was missed.
    next_at = case
      when (byrote_periodic_tasks.timing, byrote_periodic_tasks.zone) = (excluded.timing, excluded.zone)
        and byrote_periodic_tasks.next_at is not null
      then byrote_periodic_tasks.next_at
      else excluded.next_at
    end,
    changed_at = excluded.changed_at,
    code_hash = coalesce(excluded.code_hash, byrote_periodic_tasks.code_hash),
    -- The change may have fixed the fault.
    paused_at = case when byrote_periodic_tasks.fault is null then byrote_periodic_tasks.paused_at end,
    fault = null
where case
  when %(code)s::text is null then %(replace)s::boolean
  else byrote_periodic_tasks.code_hash is distinct from %(code)s
end
returning name, next_at;
