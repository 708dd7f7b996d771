-- Workers with an event in the hour up to a moment: the first and the last, and how many runs they claimed, ended and
-- lost in it.
select
  event.worker,
  min(event.at) as first_at,
  max(event.at) as last_at,
  coalesce(sum(cardinality(event.runs)) filter (where event.kind = 'Claimed'), 0)::bigint as claimed,
  coalesce(sum(cardinality(event.runs)) filter (where event.kind in ('Succeeded', 'Failed', 'Cancelled')), 0)::bigint
    as ended,
  coalesce(sum(cardinality(event.runs)) filter (where event.kind = 'Lost'), 0)::bigint as lost
from byrote_events as event
where event.worker is not null
  and event.at > %(at)s::timestamptz - interval '1 hour'
  and event.at <= %(at)s::timestamptz
group by event.worker
order by event.worker;
