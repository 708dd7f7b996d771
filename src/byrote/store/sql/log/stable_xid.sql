-- The end of the stable part of the event log: every transaction of this database below this one has ended, or will write
-- no events.
-- This commits a message that reaches the disk before the answer is returned: see stream.sql.
with durable as materialized (
  select case
    when pg_is_in_recovery() then null
    when pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn() then null
    else pg_logical_emit_message(
      current_setting('synchronous_commit') <> 'off' or set_config('synchronous_commit', 'on', true) = 'on', 'byrote', ''
    )
  end as position
)
select byrote_settled()::text as low
from durable;
