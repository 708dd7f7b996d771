-- End sessions whose clients lost their connections, and wait for their end: each statement that was sent on them has
-- then been committed, or never will be. Only sessions of this role, database and purpose: the process id may belong to
-- another session by now.
-- Returns whether all have ended. The message makes this statement's own commit wait like every commit: what it finds
-- committed has then been flushed, and received by a synchronous replica, even if that wait was cut short.
with lost_sessions as materialized (
  select pid
  from pg_stat_activity
  where pid = any (%(pids)s::integer[])
    and pid <> pg_backend_pid()
    and datname = current_database()
    and usename = session_user
    and application_name = current_setting('application_name')
),
ended as materialized (
  select coalesce(bool_and(pg_terminate_backend(pid, 5000)), true) as ended
  from lost_sessions
)
select ended, pg_logical_emit_message(true, 'byrote', '')::text as flushed_after
from ended;
