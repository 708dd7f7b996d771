-- What happened to one run, oldest first; found by the time between its first and its last moment, with an hour on
-- either side for a clock that was set.
select
  event.xid::text, event.seq, told.place, event.at, event.kind, told.result_id::text, told.attempt, told.move, event.worker,
  (event.data -> (told.result_id::text))::text as data, run.queue_name, run.task_path
from (
  select result_id, enqueued_at, finished_at, queue_name, task_path
  from byrote_runs
  where result_id = %(id)s::uuid
) as run
join byrote_events as event
  on event.at >= run.enqueued_at - interval '1 hour'
  and event.at <= coalesce(run.finished_at + interval '1 hour', 'infinity')
  and event.runs @> array[run.result_id]
cross join lateral unnest(event.runs, event.attempts, event.moves) with ordinality as told (result_id, attempt, move, place)
where told.result_id = run.result_id
order by told.move
limit %(limit)s;
