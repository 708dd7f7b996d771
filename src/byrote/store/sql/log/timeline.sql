-- What happened to one run, move by move. Its own row says between which moments to look, with an hour on either side
-- for a clock that was set; served by byrote_events_by_time.
select at, kind, attempt, worker, leased_until, data::text
from byrote_event_log
where result_id = %(id)s::uuid
  and at >= %(first)s::timestamptz - interval '1 hour'
  and at <= coalesce(%(last)s::timestamptz, (select byrote_now())) + interval '1 hour'
order by move, seq
limit %(limit)s;
