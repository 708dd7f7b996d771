-- Forget what has been kept long enough: archive, event and output partitions, dead letters, silent workers, and shadow
-- runs, ended or not. Those in the queue's own table are found by byrote_replays. Rows that another transaction has
-- locked are left for the next time.
with clock as materialized (
  select byrote_now() as now
),
kept as materialized (
  -- Days go as a whole, so the queue that keeps longest decides unless the caller does; byrote_retention has the least.
  select
    greatest(
      coalesce(%(keep_done)s::interval, max(keep_done), interval '30 days'),
      (select keep_min from byrote_retention where part = 'byrote_archive')
    ) as done,
    greatest(%(keep_events)s::interval, (select keep_min from byrote_retention where part = 'byrote_events')) as events,
    greatest(%(keep_events)s::interval, (select keep_min from byrote_retention where part = 'byrote_outputs')) as outputs
  from byrote_queues
),
forgotten as (
  delete from byrote_dead
  where ctid = any (array(
    select dead.ctid
    from byrote_dead as dead
    where dead.finished_at < (select now from clock) - case
      when dead.shadow then %(keep_shadow)s::interval
      else coalesce(
        %(keep_dead)s::interval,
        (select queue.keep_dead from byrote_queues as queue where queue.queue_name = dead.queue_name),
        interval '90 days'
      )
    end
    for update skip locked
  ))
  returning result_id
),
faded as (
  delete from byrote_task_runs
  where ctid = any (array(
    select run.ctid
    from byrote_task_runs as run
    where run.replay_of is not null
      and run.shadow
      and run.enqueued_at < (select now from clock) - %(keep_shadow)s::interval
    for update skip locked
  ))
  returning result_id
),
gone as (
  select result_id from forgotten
  union all
  select result_id from faded
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
silent as (
  delete from byrote_workers
  where ctid = any (array(
    select worker.ctid
    from byrote_workers as worker
    where worker.seen_at < (select now from clock) - %(keep_worker)s::interval
    for update skip locked
  ))
  returning 1
)
select
  byrote_drop_partitions('byrote_archive', 'finished_at', (select now from clock) - (select done from kept)) as archives,
  byrote_drop_partitions('byrote_events', 'at', (select now from clock) - (select events from kept)) as events,
  (select count(*) from forgotten) as dead,
  (select count(*) from silent) as workers,
  byrote_drop_partitions('byrote_outputs', 'at', (select now from clock) - (select outputs from kept)) as outputs,
  (select count(*) from faded) as shadows;
