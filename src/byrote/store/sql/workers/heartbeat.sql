-- Record that a worker is alive, its load, and whether it waits for work; with a holder, only for the holder's own
-- workers.
-- Returns the worker if it is registered, and its aliases that are names of tasks of other live workers. Never waits: while
-- another transaction has locked its row, nothing is recorded.
with known as materialized (
  select worker_id, aliases
  from byrote_workers
  where worker_id = %(worker)s
    and (%(holder)s::uuid is null or holder = %(holder)s::uuid)
),
free as materialized (
  select worker_id
  from byrote_workers
  where worker_id = (select worker_id from known)
  for no key update skip locked
),
noted as (
  update byrote_workers
  set seen_at = (select byrote_now()),
      idle = %(idle)s,
      stopping = %(stopping)s,
      running = %(running)s,
      finished = %(finished)s
  where worker_id = (select worker_id from free)
)
select
  worker_id,
  array(
    select distinct task
    from byrote_workers as other
    cross join unnest(known.aliases) as alias (task)
    where other.worker_id <> known.worker_id
      and other.seen_at > (select byrote_now()) - interval '45 seconds'
      and task = any (other.tasks)
      and task <> all (other.aliases)
    order by task
  ) as contested
from known;
