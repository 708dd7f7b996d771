-- The cursor before the last `back` events; no row if there are not more of them.
-- They are on disk before the answer is returned: see log_after.sql.
with found as materialized (
  select event.xid, event.seq
  from byrote_events as event
  where event.xid < (select byrote_stable_xid())
  order by event.xid desc, event.seq desc
  offset %(back)s
  limit 1
),
durable as materialized (
  select case
    when pg_is_in_recovery() then null
    when pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn() then null
    else pg_logical_emit_message(
      current_setting('synchronous_commit') <> 'off' or set_config('synchronous_commit', 'on', true) = 'on', 'byrote', ''
    )
  end as position
  from found
)
select found.xid::text::bigint as xid, found.seq
from found
cross join durable;
