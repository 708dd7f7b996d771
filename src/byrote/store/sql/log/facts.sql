-- The events of one run, oldest first; read from the time between its first and its last moment, with an hour on either
-- side for a clock that was set.
select
  event.xid::text, event.seq, entry.place, event.at, event.kind, entry.result_id::text, entry.attempt, entry.move, event.worker,
  (event.data -> (entry.result_id::text))::text as data, run.queue_name, run.task_path
from (
  select result_id, enqueued_at, finished_at, queue_name, task_path
  from byrote_runs
  where result_id = %(id)s::uuid
) as run
join byrote_events as event
  on event.at >= run.enqueued_at - interval '1 hour'
  and event.at <= coalesce(run.finished_at + interval '1 hour', 'infinity')
  and event.runs @> array[run.result_id]
cross join lateral unnest(event.runs, event.attempts, event.moves) with ordinality as entry (result_id, attempt, move, place)
where entry.result_id = run.result_id
order by entry.move
limit %(limit)s;
