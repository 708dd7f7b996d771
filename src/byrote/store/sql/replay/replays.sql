-- Runs that replay a run, oldest first. Served by byrote_replays, byrote_archived_replays and byrote_dead_replays.
select result_id::text, status, coalesce(shadow, false) as shadow
from byrote_runs
where replay_of = %(id)s::uuid
  and replay_of is not null
order by result_id
limit %(limit)s;
