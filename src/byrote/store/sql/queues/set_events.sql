-- Log all kinds of events of a queue, or few. Events that are not logged leave gaps in its runs' moves; quiet_since is
-- when the first may be.
insert into byrote_queues (queue_name, events, quiet_since)
values (%(queue)s, %(events)s::text, case when %(events)s::text = 'few' then (select byrote_now()) end)
on conflict (queue_name) do update
set events = excluded.events,
    quiet_since = coalesce(byrote_queues.quiet_since, excluded.quiet_since)
returning queue_name;
