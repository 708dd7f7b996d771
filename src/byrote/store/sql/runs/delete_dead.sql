-- Delete dead letters for good, and log it.
-- Never waits: those whose rows another transaction has locked stay unchanged and are returned as LOCKED.
with free as materialized (
  select run.result_id
  from byrote_dead as run
  where run.result_id = any (%(ids)s::uuid[])
  for update skip locked
),
deleted as (
  delete from byrote_dead
  where result_id = any (array(select result_id from free))
  returning result_id, attempts, moves
),
logged as (
  insert into byrote_events (at, kind, runs, attempts, moves)
  select (select byrote_now()), 'Deleted', array_agg(result_id), array_agg(attempts), array_agg(moves + 1)
  from deleted
  having count(*) > 0
)
select result_id::text, 'DELETED' as status
from deleted
union all
select run.result_id::text, 'LOCKED'
from byrote_dead as run
where run.result_id = any (%(ids)s::uuid[])
  and run.result_id not in (select result_id from free);
