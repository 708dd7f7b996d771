-- Every link of the chain beside what the log has for it now; links before the horizon have been pruned.
select
  chain.link, chain.events, count(event.seq) as found,
  chain.hash = sha256(
    coalesce(before.hash, '') || string_agg(byrote_event_hash(event), ''::bytea order by event.xid, event.seq)
  ) as same
from byrote_chain as chain
left join byrote_chain as before on before.link = chain.link - 1
left join byrote_events as event
  on (event.xid, event.seq) > (coalesce(before.xid, '0'), coalesce(before.seq, -1))
  and (event.xid, event.seq) <= (chain.xid, chain.seq)
where chain.first_at >= %(horizon)s
group by chain.link, chain.events, chain.hash, before.hash
order by chain.link;
