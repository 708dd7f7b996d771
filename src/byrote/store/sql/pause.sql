-- Stop workers from claiming from a queue; what runs goes on.
insert into byrote_queues (queue_name, paused_at)
values (%(queue)s, (select byrote_now()))
on conflict (queue_name) do update
set paused_at = coalesce(byrote_queues.paused_at, excluded.paused_at)
returning queue_name, paused_at;
