-- End sessions whose clients lost their connections, and wait until they are gone: whatever was sent on them has then
-- been committed, or never will be. Only sessions of this role, database and purpose: a process id may be another's by now.
-- Says whether none is left. The message makes this statement's own commit wait as every commit does: what it finds
-- committed has then been flushed, and received by a synchronous replica, even if waiting for that was cut short.
with ours as materialized (
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
  from ours
)
select ended, pg_logical_emit_message(true, 'byrote', '')::text as flushed_after
from ended;
