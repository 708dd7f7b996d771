-- Let a queue tell all kinds of events or few. What is not told leaves gaps in its runs' moves: since when, is kept.
insert into byrote_queues (queue_name, events, quiet_since)
values (%(queue)s, %(events)s::text, case when %(events)s::text = 'few' then (select byrote_now()) end)
on conflict (queue_name) do update
set events = excluded.events,
    quiet_since = coalesce(byrote_queues.quiet_since, excluded.quiet_since)
returning queue_name;
