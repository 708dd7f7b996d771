-- Events after a position, run by run, in the order of their transactions; events that may still get a predecessor are
-- withheld.
-- A position is (xid, seq): a seq may become visible after a higher one. Served by byrote_events_by_xid.
-- Events may be visible before they are on disk: duties commit without waiting for it. A crash of the server then undoes
-- them and reuses their xids for other transactions, which a follower that had gone past them would never read. So this
-- writes a message and commits it synchronously, which first flushes everything committed before; a read-only transaction
-- can do so, too. A standby has only what is on its primary's disk.
with page as materialized (
  select event.*
  from byrote_events as event
  where (event.xid, event.seq) > (%(xid)s::text::xid8, %(seq)s::bigint)
    and event.xid < (select byrote_settled())
    and event.kind not in ('StepStored', 'ArtifactStored')  -- They move no run: a page of only these would have no rows.
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
  page.xid::text, page.seq, entry.place, page.at, page.kind, entry.result_id::text, entry.attempt, entry.move, page.worker,
  (page.data -> (entry.result_id::text))::text as data, run.queue_name, run.task_path
from page
cross join durable
cross join lateral unnest(page.runs, page.attempts, page.moves) with ordinality as entry (result_id, attempt, move, place)
left join lateral (
  select queue_name, task_path from byrote_runs where result_id = entry.result_id limit 1
) as run on true
order by page.xid, page.seq, entry.place;
