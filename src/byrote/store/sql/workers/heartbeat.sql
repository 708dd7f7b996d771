-- Record that a worker is alive, its load, and whether it waits for work; with a holder, only for the holder's own
-- workers.
-- Returns the worker if it is registered. Never waits: while another transaction has locked its row, nothing is recorded.
with known as materialized (
  select worker_id
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
select worker_id
from known;
