-- Events after a cursor, in an order that no late commit changes: up to the oldest transaction still under way.
-- They are on disk before the answer is returned: see stream.sql.
with page as materialized (
  select
    event.xid, event.seq, event.at, event.kind, event.worker, event.leased_until, event.runs, event.attempts,
    event.moves, event.data
  from byrote_events as event
  where (event.xid, event.seq) > (%(xid)s::text::xid8, %(seq)s::bigint)
    and event.xid < (select byrote_settled())
    and (%(kind)s::text is null or event.kind = %(kind)s)
    and (%(run)s::uuid is null or event.runs @> array[%(run)s::uuid])
  order by event.xid, event.seq
  limit %(limit)s
),
durable as materialized (
  select case
    when pg_is_in_recovery() then null
    when pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn() then null
    else pg_logical_emit_message(
      current_setting('synchronous_commit') <> 'off' or set_config('synchronous_commit', 'on', true) = 'on', 'byrote', ''
    )
  end as position
  from page
  limit 1
)
select
  page.xid::text, page.seq, page.at, page.kind, page.worker, page.leased_until, page.runs::text[], page.attempts,
  page.moves, page.data::text
from page
cross join durable
order by page.xid, page.seq;
