-- Let a periodic task have no more runs until it is resumed; what runs goes on. With a fault: since it cannot go on.
update byrote_periodic_tasks
set paused_at = coalesce(paused_at, (select byrote_now())),
    fault = coalesce(%(fault)s::text, fault)
where name = %(name)s
returning name;
