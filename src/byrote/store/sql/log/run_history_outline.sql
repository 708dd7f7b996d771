-- The moves of one run as run_history.sql returns them, for logins that may not see lease tokens.
-- No index leads from a run to its events: this reads the days, and within them the pages, between the run's first and
-- last moment, with an hour on either side for a clock that was set.
select
  entry.result_id::text, event.xid::text::bigint as xid, event.seq, entry.ordinal, event.at, event.kind, event.schema,
  entry.attempt, entry.move, event.worker, event.leased_until, (event.data -> (entry.result_id::text))::text as data,
  null as lease_token, null as digest
from byrote_events as event
cross join lateral unnest(event.runs, event.attempts, event.moves)
  with ordinality as entry (result_id, attempt, move, ordinal)
where event.at >= coalesce(
    (select run.enqueued_at - interval '1 hour' from byrote_runs as run where run.result_id = %(id)s::uuid limit 1),
    '-infinity'
  )
  and event.at <= coalesce(
    (select run.finished_at + interval '1 hour' from byrote_runs as run where run.result_id = %(id)s::uuid limit 1),
    'infinity'
  )
  and event.at <= coalesce(%(at)s::timestamptz, 'infinity')
  and event.runs @> array[%(id)s::uuid]
  and entry.result_id = %(id)s::uuid
order by entry.move, event.seq
limit %(limit)s::bigint;
