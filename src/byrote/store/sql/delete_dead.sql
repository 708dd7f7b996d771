-- Delete dead letters for good. The log remembers that somebody did.
with gone as (
  delete from byrote_dead
  where result_id = any (%(ids)s::uuid[])
  returning result_id, attempts, moves
),
told as (
  insert into byrote_events (at, kind, runs, attempts, moves)
  select (select byrote_now()), 'Deleted', array_agg(result_id), array_agg(attempts), array_agg(moves + 1)
  from gone
  having count(*) > 0
)
select result_id::text
from gone;
