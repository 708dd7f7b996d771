-- Delete finished runs and what belongs to them; runs that have not ended stay. Their artifacts go by the duty for those.
-- Never waits for a run: those whose rows another transaction has locked stay and are returned as LOCKED.
with clock as materialized (
  select byrote_now() as now
),
free_recent as materialized (
  select run.result_id
  from byrote_task_runs as run
  where run.result_id = any (%(ids)s::uuid[])
    and run.finished_at is not null
  for update skip locked
),
free_archived as materialized (
  select run.result_id
  from byrote_archive as run
  where run.result_id = any (%(ids)s::uuid[])
  for update skip locked
),
free_dead as materialized (
  select run.result_id
  from byrote_dead as run
  where run.result_id = any (%(ids)s::uuid[])
  for update skip locked
),
locked as (
  select run.result_id
  from byrote_task_runs as run
  where run.result_id = any (%(ids)s::uuid[])
    and run.finished_at is not null
    and run.result_id not in (select result_id from free_recent)
  union all
  select run.result_id
  from byrote_archive as run
  where run.result_id = any (%(ids)s::uuid[])
    and run.result_id not in (select result_id from free_archived)
  union all
  select run.result_id
  from byrote_dead as run
  where run.result_id = any (%(ids)s::uuid[])
    and run.result_id not in (select result_id from free_dead)
),
recent as (
  delete from byrote_task_runs as run
  where run.result_id = any (array(select result_id from free_recent))
  returning run.result_id, run.attempts, run.moves
),
archived as (
  delete from byrote_archive as run
  where run.result_id = any (array(select result_id from free_archived))
  returning run.result_id, run.attempts, run.moves
),
dead as (
  delete from byrote_dead as run
  where run.result_id = any (array(select result_id from free_dead))
  returning run.result_id, run.attempts, run.moves
),
gone as materialized (
  select * from recent
  union all
  select * from archived
  union all
  select * from dead
),
steps as (
  delete from byrote_steps using gone where byrote_steps.result_id = gone.result_id
),
signals as (
  delete from byrote_signals using gone where byrote_signals.result_id = gone.result_id
),
marks as (
  delete from byrote_once using gone where byrote_once.result_id = gone.result_id
),
reports as (
  delete from byrote_progress using gone where byrote_progress.result_id = gone.result_id
),
outputs as (
  delete from byrote_outputs using gone where byrote_outputs.result_id = gone.result_id
),
told as (
  insert into byrote_events (at, kind, runs, attempts, moves)
  select (select now from clock), 'Deleted', array_agg(result_id), array_agg(attempts), array_agg(moves + 1)
  from gone
  having count(*) > 0
)
select result_id::text, 'DELETED' as status
from gone
union all
select result_id::text, 'LOCKED'
from locked;
