-- Let workers claim from a queue again, and wake those that are idle.
with resumed as (
  insert into byrote_queues (queue_name)
  values (%(queue)s)
  on conflict (queue_name) do update
  set paused_at = null
  returning queue_name, paused_at
)
select queue_name, paused_at, pg_notify('byrote_ready', queue_name)::text as woken
from resumed;
