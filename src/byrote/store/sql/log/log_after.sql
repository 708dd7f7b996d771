-- Events after a cursor, in the order of their transactions; an absent filter is null. Events that may still get a
-- predecessor are withheld: a seq may become visible after a higher one. Served by byrote_events_by_xid.
-- With an ordinal, the event of the cursor comes again if it has runs beyond that ordinal.
-- Events may be visible before they are on disk: duties commit without waiting for it. A crash of the server then undoes
-- them and reuses their xids for other transactions, which a follower that had gone past them would never read. So this
-- writes a message and commits it synchronously, which first flushes everything committed before; a read-only transaction
-- can do so, too. A standby has only what is on its primary's disk.
with page as materialized (
  select
    event.xid, event.seq, event.at, event.kind, event.schema, event.worker, event.leased_until, event.runs,
    event.attempts, event.moves, event.data
  from byrote_events as event
  where (event.xid, event.seq)
      > (%(xid)s::text::xid8, %(seq)s::bigint - (%(ordinal)s::integer is not null)::integer)
    and (%(ordinal)s::integer is null or event.seq <> %(seq)s::bigint or cardinality(event.runs) > %(ordinal)s::integer)
    and event.xid < (select byrote_stable_xid())
    and (%(kind)s::text is null or event.kind = %(kind)s)
    and (%(run)s::uuid is null or event.runs @> array[%(run)s::uuid])
    and not (%(moves)s::boolean and event.kind in ('StepStored', 'ArtifactStored'))
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
  page.xid::text::bigint as xid, page.seq, page.at, page.kind, page.schema, page.worker, page.leased_until,
  page.runs::text[], page.attempts, page.moves, page.data::text
from page
cross join durable
order by page.xid, page.seq;
