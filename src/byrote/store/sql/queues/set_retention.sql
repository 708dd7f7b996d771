-- Set how long these queues keep finished and dead runs; null leaves a setting unchanged. Returns the settings, and whether
-- one of them was another before.
with before as (
  select queue_name, keep_done, keep_dead
  from byrote_queues
  where queue_name = any (%(queues)s::text[])
)
insert into byrote_queues (queue_name, keep_done, keep_dead)
select
  served.queue_name, coalesce(%(keep_done)s::interval, interval '30 days'), coalesce(%(keep_dead)s::interval, interval '90 days')
from unnest(%(queues)s::text[]) as served (queue_name)
on conflict (queue_name) do update
set keep_done = coalesce(%(keep_done)s::interval, byrote_queues.keep_done),
    keep_dead = coalesce(%(keep_dead)s::interval, byrote_queues.keep_dead)
returning
  queue_name, keep_done, keep_dead,
  (queue_name, keep_done, keep_dead) not in (select before.queue_name, before.keep_done, before.keep_dead from before) as changed;
