-- Delete one batch of steps, signals, marks and progress of runs that no longer exist. They have no partition to be
-- dropped with: a run may sleep for a year and needs its first step then. Served by the …_for_forget indexes.
-- Rows that another transaction has locked are left for the next time.
with clock as materialized (
  select byrote_now() as now
),
horizon as materialized (
  select (select now from clock) - coalesce(%(keep_done)s::interval, max(keep_done), interval '30 days') as moment
  from byrote_queues
),
steps as (
  delete from byrote_steps as step
  where step.ctid = any (array(
    select old.ctid
    from byrote_steps as old
    where old.at < (select moment from horizon)
      and not exists (select 1 from byrote_task_runs as run where run.result_id = old.result_id)
      and not exists (select 1 from byrote_dead as run where run.result_id = old.result_id)
      and not exists (select 1 from byrote_archive as run where run.result_id = old.result_id)
    order by old.at
    limit %(limit)s
    for update of old skip locked
  ))
  returning 1
),
signals as (
  delete from byrote_signals as signal
  where signal.ctid = any (array(
    select old.ctid
    from byrote_signals as old
    where old.at < (select moment from horizon)
      and not exists (select 1 from byrote_task_runs as run where run.result_id = old.result_id)
      and not exists (select 1 from byrote_dead as run where run.result_id = old.result_id)
      and not exists (select 1 from byrote_archive as run where run.result_id = old.result_id)
    order by old.at
    limit %(limit)s
    for update of old skip locked
  ))
  returning 1
),
marks as (
  delete from byrote_once as mark
  where mark.ctid = any (array(
    select old.ctid
    from byrote_once as old
    where old.at < (select moment from horizon)
      and not exists (select 1 from byrote_task_runs as run where run.result_id = old.result_id)
      and not exists (select 1 from byrote_dead as run where run.result_id = old.result_id)
      and not exists (select 1 from byrote_archive as run where run.result_id = old.result_id)
    order by old.at
    limit %(limit)s
    for update of old skip locked
  ))
  returning 1
),
reports as (
  delete from byrote_progress as report
  where report.ctid = any (array(
    select old.ctid
    from byrote_progress as old
    where old.began_at < (select moment from horizon)
      and not exists (select 1 from byrote_task_runs as run where run.result_id = old.result_id)
      and not exists (select 1 from byrote_dead as run where run.result_id = old.result_id)
      and not exists (select 1 from byrote_archive as run where run.result_id = old.result_id)
    order by old.began_at
    limit %(limit)s
    for update of old skip locked
  ))
  returning 1
)
select
  (select count(*) from steps), (select count(*) from signals), (select count(*) from marks),
  (select count(*) from reports);
