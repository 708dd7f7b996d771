-- Events after a cursor, in an order that no late commit upsets: up to the oldest transaction still under way.
select
  event.xid::text, event.seq, event.at, event.kind, event.worker, event.leased_until, event.runs::text[], event.attempts,
  event.moves, event.data::text
from byrote_events as event
where (event.xid, event.seq) > (%(xid)s::text::xid8, %(seq)s::bigint)
  and event.xid < (select byrote_settled())
  and (%(kind)s::text is null or event.kind = %(kind)s)
  and (%(run)s::uuid is null or event.runs @> array[%(run)s::uuid])
order by event.xid, event.seq
limit %(limit)s;
