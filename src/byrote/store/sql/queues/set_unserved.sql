-- Set how long a queue's ready runs wait for a worker that knows their task before they end FAILED; null is for ever.
-- Returns no row if the setting was the same before.
insert into byrote_queues (queue_name, unserved_for)
values (%(queue)s, %(after)s::interval)
on conflict (queue_name) do update
set unserved_for = excluded.unserved_for
where byrote_queues.unserved_for is distinct from excluded.unserved_for
returning queue_name;
