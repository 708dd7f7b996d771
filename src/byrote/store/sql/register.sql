-- Announce a worker, and make sure its queues have a row to be paused by. The queues of replays come and go: they have none.
with known as (
  insert into byrote_queues (queue_name)
  select queue_name
  from unnest(%(queues)s::text[]) as served (queue_name)
  where not starts_with(queue_name, 'byrote.shadow.')
  on conflict do nothing
)
insert into byrote_workers (
  worker_id, started_at, seen_at, pid, hands, concurrency, host, version, python, queues, tasks
)
values (
  %(worker)s, (select byrote_now()), (select byrote_now()), %(pid)s, %(hands)s, %(concurrency)s, %(host)s,
  %(version)s, %(python)s, %(queues)s::text[], %(tasks)s::text[]
)
on conflict (worker_id) do update
set seen_at = excluded.seen_at, queues = excluded.queues, tasks = excluded.tasks
returning worker_id;
