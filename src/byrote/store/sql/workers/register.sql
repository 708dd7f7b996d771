-- Announce a worker, and make sure its queues have a row to be paused by. The queues of replays come and go: they have none.
-- The name of a worker that lives belongs to its `holder`, and no row is the answer to another one. Without a holder it is a
-- worker with a connection to the database, or a service, which may take any name.
with registered as (
  insert into byrote_workers as known (
    worker_id, started_at, seen_at, pid, hands, concurrency, host, version, python, queues, tasks, holder
  )
  values (
    %(worker)s, (select byrote_now()), (select byrote_now()), %(pid)s, %(hands)s, %(concurrency)s, %(host)s,
    %(version)s, %(python)s, %(queues)s::text[], %(tasks)s::text[], %(holder)s::uuid
  )
  on conflict (worker_id) do update
  set seen_at = excluded.seen_at, queues = excluded.queues, tasks = excluded.tasks, holder = excluded.holder
  where excluded.holder is null
    or known.holder = excluded.holder
    or known.seen_at <= (select byrote_now()) - interval '45 seconds'
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
