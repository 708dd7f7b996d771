-- Delete finished runs and what belongs to them; whatever has not ended stays. Their artifacts go by the duty for those.
with clock as materialized (
  select byrote_now() as now
),
recent as (
  delete from byrote_task_runs as run
  where run.result_id = any (%(ids)s::uuid[])
    and run.finished_at is not null
  returning run.result_id, run.attempts, run.moves
),
archived as (
  delete from byrote_archive as run
  where run.result_id = any (%(ids)s::uuid[])
  returning run.result_id, run.attempts, run.moves
),
dead as (
  delete from byrote_dead as run
  where run.result_id = any (%(ids)s::uuid[])
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
select result_id::text
from gone;
