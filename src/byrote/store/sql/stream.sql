-- Events after a position, run by run, in the order of their transactions; those that may still get a predecessor are kept back.
-- A position is (xid, seq): a seq may become visible after a higher one. Served by byrote_events_by_xid.
with page as materialized (
  select event.*
  from byrote_events as event
  where (event.xid, event.seq) > (%(xid)s::text::xid8, %(seq)s::bigint)
    and event.xid < (select byrote_settled())
  order by event.xid, event.seq
  limit %(limit)s
)
select
  page.xid::text, page.seq, told.place, page.at, page.kind, told.result_id::text, told.attempt, told.move, page.worker,
  (page.data -> (told.result_id::text))::text as data, run.queue_name, run.task_path
from page
cross join lateral unnest(page.runs, page.attempts, page.moves) with ordinality as told (result_id, attempt, move, place)
left join lateral (
  select queue_name, task_path from byrote_runs where result_id = told.result_id limit 1
) as run on true
order by page.xid, page.seq, told.place;
