-- Delete what is past its retention: archive, event and output partitions, dead letters, silent workers, and shadow runs,
-- finished or not. Those in the hot table are found by byrote_replays. What another transaction has locked is left for the
-- next time: a row, or a run of which it has locked a step, a signal, a mark or the progress.
with clock as materialized (
  select byrote_now() as now
),
retention as materialized (
  -- A day is dropped as a whole, so the longest setting of a queue decides unless the caller does; byrote_retention has the
  -- minimum.
  select
    greatest(
      coalesce(%(keep_done)s::interval, max(keep_done), interval '30 days'),
      (select keep_min from byrote_retention where part = 'byrote_archive')
    ) as done,
    greatest(%(keep_events)s::interval, (select keep_min from byrote_retention where part = 'byrote_events')) as events,
    greatest(%(keep_events)s::interval, (select keep_min from byrote_retention where part = 'byrote_outputs')) as outputs
  from byrote_queues
),
old_dead as materialized (
  select dead.result_id, dead.ctid as tid
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
),
old_shadows as materialized (
  select run.result_id, run.ctid as tid
  from byrote_task_runs as run
  where run.replay_of is not null
    and run.shadow
    and run.enqueued_at < (select now from clock) - %(keep_shadow)s::interval
  for update skip locked
),
locked as materialized (
  select locked.result_id
  from byrote_locked_state(
    array(select result_id from old_dead union all select result_id from old_shadows)
  ) as locked (result_id)
),
deleted_dead as (
  delete from byrote_dead
  where ctid = any (array(select tid from old_dead where result_id not in (select result_id from locked)))
  returning result_id
),
deleted_shadows as (
  delete from byrote_task_runs
  where ctid = any (array(select tid from old_shadows where result_id not in (select result_id from locked)))
  returning result_id
),
deleted as (
  select result_id from deleted_dead
  union all
  select result_id from deleted_shadows
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
deleted_workers as (
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
  byrote_drop_partitions('byrote_archive', 'finished_at', (select now from clock) - (select done from retention)) as archives,
  byrote_drop_partitions('byrote_events', 'at', (select now from clock) - (select events from retention)) as events,
  (select count(*) from deleted_dead) as dead,
  (select count(*) from deleted_workers) as workers,
  byrote_drop_partitions('byrote_outputs', 'at', (select now from clock) - (select outputs from retention)) as outputs,
  (select count(*) from deleted_shadows) as shadows;
