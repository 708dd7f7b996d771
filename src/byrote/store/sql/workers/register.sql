-- Register a worker, and ensure that its queues have a row to be paused by. The queues of replays are temporary and have
-- none.
-- The name of a live worker belongs to its `holder`: a token of the service, or one start of a process that is connected
-- to the database itself. Another holder gets no row until the worker has been silent for a while. A service has no holder
-- and may take any name.
-- Returns those of its aliases that are names of tasks of other live workers, and notifies live workers whose aliases are
-- names of its tasks.
with registered as (
  insert into byrote_workers as known (
    worker_id, started_at, seen_at, pid, hands, concurrency, host, version, python, queues, tasks, aliases, policies,
    holder
  )
  values (
    %(worker)s, (select byrote_now()), (select byrote_now()), %(pid)s, %(hands)s, %(concurrency)s, %(host)s,
    %(version)s, %(python)s, %(queues)s::text[], %(tasks)s::text[], %(aliases)s::text[],
    %(policies)s::jsonb, %(holder)s::uuid
  )
  on conflict (worker_id) do update
  set seen_at = excluded.seen_at, queues = excluded.queues, tasks = excluded.tasks, aliases = excluded.aliases,
      policies = excluded.policies, holder = excluded.holder,
      started_at = case when known.holder is distinct from excluded.holder then excluded.started_at else known.started_at end,
      pid = excluded.pid, host = excluded.host, hands = excluded.hands, concurrency = excluded.concurrency,
      version = excluded.version, python = excluded.python
  where excluded.holder is null
    or known.holder = excluded.holder
    or known.seen_at <= (select byrote_now()) - %(silent_for)s::interval
  returning worker_id
),
known as (
  insert into byrote_queues (queue_name)
  select queue_name
  from unnest(%(queues)s::text[]) as served (queue_name)
  where not starts_with(queue_name, 'byrote.shadow.')
    and exists (select from registered)
  on conflict do nothing
)
select
  worker_id,
  array(
    select distinct task
    from byrote_workers as other
    cross join unnest(%(aliases)s::text[]) as alias (task)
    where other.worker_id <> %(worker)s
      and other.seen_at > (select byrote_now()) - interval '45 seconds'
      and task = any (other.tasks)
      and task <> all (other.aliases)
    order by task
  ) as contested,
  (
    select count(pg_notify(byrote_channel('byrote_cancel'), other.worker_id))
    from byrote_workers as other
    where other.worker_id <> %(worker)s
      and other.aliases && %(tasks)s::text[]
      and exists (
        select 1 from unnest(other.aliases) as alias (task)
        where task = any (%(tasks)s::text[]) and task <> all (%(aliases)s::text[])
      )
  ) as notified
from registered;
