-- The facts about the whole database that judging one run depends on. The function that drops parts of the log stores how
-- far it dropped it (byrote_drop_partitions); a part missing after that was not dropped by right.
with clock as materialized (
  select byrote_now() as now
)
select
  (select now from clock) as now,
  coalesce(
    (select timestamptz 'epoch' + cursor::bigint * interval '1 microsecond' from byrote_duties where duty = 'prune'),
    'epoch'
  ) as horizon,
  exists (
    select 1 from byrote_workers where seen_at > (select now from clock) - interval '45 seconds' and not stopping
  ) as alive,
  (
    select coalesce(jsonb_object_agg(queue_name, byrote_micros(quiet_since)), '{}')
    from byrote_queues
    where quiet_since is not null
  )::text as quiet,
  (select now from clock) - coalesce(least((select min(keep_done) from byrote_queues), interval '30 days'), '30 days')
    as done_since,
  (select now from clock) - coalesce(least((select min(keep_dead) from byrote_queues), interval '90 days'), '90 days')
    as dead_since,
  (select count(*) from byrote_runs) as runs,
  (select coalesce(array_agg(provenance_id), '{}') from byrote_provenance) as environments,
  (
    select coalesce(
      jsonb_agg(
        jsonb_build_array(
          queue_name, entry.task_path, entry.task_version,
          byrote_micros((select now from clock) - queue.unserved_for - interval '10 minutes')
        )
      ),
      '[]'
    )
    from byrote_unserved as entry
    join byrote_queues as queue using (queue_name)
    where entry.waited >= queue.unserved_for + interval '10 minutes'
      and entry.seen_at > (select now from clock) - interval '1 minute'
      and queue.paused_at is null
  )::text as overdue;
