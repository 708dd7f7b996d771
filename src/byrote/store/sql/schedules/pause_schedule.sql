-- Stop the ticks of a periodic task until it is resumed; runs under way continue. `fault` is why it cannot continue.
update byrote_periodic_tasks
set paused_at = coalesce(paused_at, (select byrote_now())),
    fault = coalesce(%(fault)s::text, fault)
where name = %(name)s
returning name;
