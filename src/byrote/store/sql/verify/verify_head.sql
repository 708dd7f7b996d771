-- The end of the chain, the link that its duty has noted, the hash of the link that a kept head names, and how many
-- events are not chained.
-- Served by the primary key of byrote_chain and by byrote_events_by_xid.
with tip as materialized (
  select chain.link, chain.xid, chain.seq, chain.hash, chain.linked_at
  from byrote_chain as chain
  order by chain.link desc
  limit 1
)
select
  (select link from tip) as link,
  encode((select hash from tip), 'hex') as hash,
  (select linked_at from tip) as linked_at,
  (select cursor::bigint from byrote_duties where duty = 'chain') as noted,
  (select min(link) from byrote_chain) as first,
  (select encode(chain.hash, 'hex') from byrote_chain as chain where chain.link = %(kept)s::bigint) as there,
  case
    when exists (select 1 from tip) then (
      select count(*)
      from byrote_events as event
      where (event.xid, event.seq) > ((select xid from tip), (select seq from tip))
    )
    else 0
  end as unchained;
