-- The events of one run, move by move. The run's row has the first and last moment to read, with an hour on either side
-- for a clock that was set. Served by byrote_events_by_time.
select at, kind, attempt, worker, leased_until, data::text
from byrote_event_log
where result_id = %(id)s::uuid
  and at >= %(first)s::timestamptz - interval '1 hour'
  and at <= coalesce(%(last)s::timestamptz, (select byrote_now())) + interval '1 hour'
order by move, seq
limit %(limit)s;
