-- Delete finished runs with their steps, signals, marks, progress and output; unfinished runs stay. Their artifacts are
-- deleted by a duty (prune_artifacts.sql).
-- Never waits: runs of which another transaction has locked a row, be it a step's, stay and are returned as LOCKED.
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
free_runs as materialized (
  select * from free_recent
  union all
  select * from free_archived
  union all
  select * from free_dead
),
free_outputs as materialized (
  select output.result_id, output.tableoid, output.ctid
  from byrote_outputs as output
  where output.result_id = any (array(select result_id from free_runs))
  for update skip locked
),
locked_state as materialized (
  select locked.result_id
  from byrote_locked_state(array(select result_id from free_runs)) as locked (result_id)
  union
  select locked.result_id
  from (
    select output.result_id, output.tableoid, output.ctid
    from byrote_outputs as output
    where output.result_id = any (array(select result_id from free_runs))
    except
    select * from free_outputs
  ) as locked
),
free as materialized (
  select result_id
  from free_runs
  where result_id not in (select result_id from locked_state)
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
  union all
  select result_id
  from locked_state
),
recent as (
  delete from byrote_task_runs as run
  where run.result_id = any (array(select result_id from free))
  returning run.result_id, run.attempts, run.moves
),
archived as (
  delete from byrote_archive as run
  where run.result_id = any (array(select result_id from free))
  returning run.result_id, run.attempts, run.moves
),
dead as (
  delete from byrote_dead as run
  where run.result_id = any (array(select result_id from free))
  returning run.result_id, run.attempts, run.moves
),
deleted as materialized (
  select * from recent
  union all
  select * from archived
  union all
  select * from dead
),
steps as (
  delete from byrote_steps using deleted where byrote_steps.result_id = deleted.result_id
),
signals as (
  delete from byrote_signals using deleted where byrote_signals.result_id = deleted.result_id
),
marks as (
  delete from byrote_once using deleted where byrote_once.result_id = deleted.result_id
),
reports as (
  delete from byrote_progress using deleted where byrote_progress.result_id = deleted.result_id
),
outputs as (
  delete from byrote_outputs using deleted where byrote_outputs.result_id = deleted.result_id
),
logged as (
  insert into byrote_events (at, kind, runs, attempts, moves)
  select (select now from clock), 'Deleted', array_agg(result_id), array_agg(attempts), array_agg(moves + 1)
  from deleted
  having count(*) > 0
)
select result_id::text, 'DELETED' as status
from deleted
union all
select result_id::text, 'LOCKED'
from locked;
