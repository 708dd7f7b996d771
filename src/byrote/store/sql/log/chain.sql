-- Add one link to the chain: up to `limit` events that no late commit can precede any more.
-- The lock on the last link keeps two workers from adding the same one. The duty's row stores the link's number, so that
-- `byrote verify` notices when links are removed from the end (verify_head.sql).
with clock as materialized (
  select byrote_now() as now
),
tip as materialized (
  select chain.link, chain.xid, chain.seq, chain.hash
  from byrote_chain as chain
  order by chain.link desc
  limit 1
  for update
),
fresh as materialized (
  select event.xid, event.seq, event.at, byrote_event_hash(event) as hash
  from byrote_events as event
  where (event.xid, event.seq) > (coalesce((select xid from tip), '0'), coalesce((select seq from tip), -1))
    and event.xid < (select byrote_stable_xid())
  order by event.xid, event.seq
  limit %(limit)s
),
linked as (
  insert into byrote_chain (link, xid, seq, events, first_at, linked_at, hash)
  select
    coalesce((select link from tip), 0) + 1,
    (select xid from fresh order by xid desc, seq desc limit 1),
    (select seq from fresh order by xid desc, seq desc limit 1),
    count(*),
    min(fresh.at),
    (select now from clock),
    sha256(coalesce((select hash from tip), '') || string_agg(fresh.hash, ''::bytea order by fresh.xid, fresh.seq))
  from fresh
  having count(*) > 0
  on conflict (link) do nothing
  returning link, events
),
noted as (
  update byrote_duties
  set cursor = greatest(byrote_duties.cursor::bigint, linked.link)::text
  from linked
  where byrote_duties.duty = 'chain'
)
select events
from linked;
