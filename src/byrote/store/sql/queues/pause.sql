-- Stop workers from claiming from a queue; runs under way continue.
-- `changed` is false if it was paused before.
with earlier as materialized (
  select paused_at from byrote_queues where queue_name = %(queue)s
)
insert into byrote_queues (queue_name, paused_at)
values (%(queue)s, (select byrote_now()))
on conflict (queue_name) do update
set paused_at = coalesce(byrote_queues.paused_at, excluded.paused_at)
returning queue_name, paused_at, not exists (select from earlier where earlier.paused_at is not null) as changed;
