-- Let a periodic task have runs again, from a moment on: what was due while it was paused is not made up for.
update byrote_periodic_tasks
set paused_at = null,
    fault = null,
    next_at = case when paused_at is null then next_at else %(next_at)s::timestamptz end
where name = %(name)s
returning name, next_at;
