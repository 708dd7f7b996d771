-- Register a worker, and ensure that its queues have a row to be paused by. The queues of replays are temporary and have
-- none.
-- The name of a live worker belongs to its `holder`: a token of the service, or one start of a process that is connected
-- to the database itself. Another holder gets no row until the worker has been silent for a while. A service has no holder
-- and may take any name.
with registered as (
  insert into byrote_workers as known (
    worker_id, started_at, seen_at, pid, hands, concurrency, host, version, python, queues, tasks, holder
  )
  values (
    %(worker)s, (select byrote_now()), (select byrote_now()), %(pid)s, %(hands)s, %(concurrency)s, %(host)s,
    %(version)s, %(python)s, %(queues)s::text[], %(tasks)s::text[], %(holder)s::uuid
  )
  on conflict (worker_id) do update
  set seen_at = excluded.seen_at, queues = excluded.queues, tasks = excluded.tasks, holder = excluded.holder,
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
select worker_id
from registered;
