-- Delete the artifacts of runs that were pruned, a page of the primary key at a time: the ids of runs rise with time.
-- Rows that another transaction has locked are left for the next walk.
with page as materialized (
  select artifact.result_id, artifact.attempt, artifact.name
  from byrote_artifacts as artifact
  where artifact.result_id > %(after)s::uuid
  order by artifact.result_id
  limit %(limit)s
),
runs as materialized (
  select distinct page.result_id
  from page
),
orphaned as materialized (
  select runs.result_id
  from runs
  where not exists (select from byrote_task_runs as run where run.result_id = runs.result_id)
    and not exists (select from byrote_archive as run where run.result_id = runs.result_id)
    and not exists (select from byrote_dead as run where run.result_id = runs.result_id)
),
deleted as (
  -- All artifacts of a run, also those beyond the end of the page: the next page begins after its last run.
  delete from byrote_artifacts as artifact
  where artifact.ctid = any (array(
    select stored.ctid
    from byrote_artifacts as stored
    where stored.result_id = any (array(select result_id from orphaned))
    for update skip locked
  ))
  returning 1
)
select
  (select count(*) from deleted) as removed,
  (select result_id::text from runs order by result_id desc limit 1) as reached;
