-- What happened to one run, move by move. Its own row says between which moments to look; served by byrote_events_by_time.
select at, kind, attempt, worker, leased_until, data::text
from byrote_event_log
where result_id = %(id)s::uuid
  and at between %(first)s::timestamptz and coalesce(%(last)s::timestamptz, (select byrote_now()))
order by move, seq
limit %(limit)s;
