-- Accept one run: READY when due, WAITING when not. The same as enqueue.sql, in the form that costs least for one run.
-- The sender chooses the run's id, so the primary key refuses it when it is sent again after a lost answer.
with accepted as (
  insert into byrote_task_runs (
    result_id, queue_name, task_path, task_version, spec_json, spec_hash, priority, run_after, rank,
    status, wait_reason, enqueued_at, max_attempts, timeout_ms, retry_json, labels, traceparent
  )
  select
    %(id)s::uuid, %(queue)s::text, %(task)s::text, %(version)s::integer, %(spec)s::text, %(hash)s::bytea,
    %(priority)s::smallint, moment.run_after,
    byrote_micros(moment.run_after) - case
      when %(priority)s::bigint = 0 then 0  -- The usual case: saves reading the queue's ageing.
      else %(priority)s::bigint * coalesce(
        (
          select byrote_micros(moment.now + queue.ageing) - byrote_micros(moment.now)
          from byrote_queues as queue
          where queue.queue_name = %(queue)s
        ),
        10000000000000
      )
    end,
    case when moment.run_after > moment.now then 'WAITING' else 'READY' end,
    case when moment.run_after > moment.now then 'due' end,
    moment.now, %(max_attempts)s::integer, %(timeout_ms)s::bigint, %(retry)s::text, %(labels)s::jsonb, %(trace)s::text
  from (
    select
      clock.now,
      -- Never in the past: a time long ago would outweigh every priority.
      greatest(%(due)s::timestamptz, clock.now + coalesce(%(delay_us)s::bigint, 0) * interval '1 microsecond') as run_after
    from (select byrote_now() as now offset 0) as clock
  ) as moment
  returning result_id, queue_name, status, enqueued_at, run_after
),
logged as (
  insert into byrote_events (schema, at, kind, runs, attempts, moves, digests, data)
  select
    3, enqueued_at, 'Enqueued', array[result_id], array[0], array[1], array[%(hash)s::bytea],
    case when status = 'WAITING' then jsonb_build_object(result_id, jsonb_build_object('run_after', run_after)) end
  from accepted
)
select
  accepted.enqueued_at,
  case
    when accepted.status = 'READY' and exists (
      select 1
      from byrote_workers as worker
      where worker.idle
        and accepted.queue_name = any (worker.queues)
        and worker.seen_at > accepted.enqueued_at - interval '1 minute'
    )
    then pg_notify(byrote_channel('byrote_ready'), accepted.queue_name)::text
  end as notified
from accepted;
