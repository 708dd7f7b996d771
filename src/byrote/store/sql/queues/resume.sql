-- Let workers claim from a queue again, and notify those that are idle.
-- `changed` is false if it was not paused.
with earlier as materialized (
  select paused_at from byrote_queues where queue_name = %(queue)s
),
resumed as (
  insert into byrote_queues (queue_name)
  values (%(queue)s)
  on conflict (queue_name) do update
  set paused_at = null
  returning queue_name, paused_at
)
select
  queue_name, paused_at, exists (select from earlier where earlier.paused_at is not null) as changed,
  pg_notify(byrote_channel('byrote_ready'), queue_name)::text as notified
from resumed;
