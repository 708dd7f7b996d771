-- Resume a periodic task from a moment on: ticks that were due while it was paused are not made up for.
update byrote_periodic_tasks
set paused_at = null,
    fault = null,
    next_at = case when paused_at is null then next_at else %(next_at)s::timestamptz end
where name = %(name)s
returning name, next_at;
