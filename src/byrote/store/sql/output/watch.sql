-- Watch a run for another ten seconds; returns the output of its attempt under way as its worker last stored it.
-- Notifies the worker if that is more than five seconds old. A worker that does not listen checks by itself every few
-- seconds.
with clock as materialized (
  select byrote_now() as now
),
run as materialized (
  select leased_by, attempts
  from byrote_task_runs
  where result_id = %(id)s::uuid
    and status = 'RUNNING'
),
renewed as (
  insert into byrote_watched as watched (result_id, until)
  select %(id)s::uuid, (select now from clock) + interval '10 seconds'
  from run
  on conflict (result_id) do update
  set until = excluded.until
  -- Not with every call: each would leave a dead row behind.
  where watched.until < (select now from clock) + interval '5 seconds'
  returning 1
),
notified as (
  select pg_notify(byrote_channel('byrote_watch'), run.leased_by)
  from run
  where not exists (
    select 1
    from byrote_watched as watched
    where watched.result_id = %(id)s::uuid
      and watched.attempt = run.attempts
      and watched.updated_at > (select now from clock) - interval '5 seconds'
  )
)
select
  watched.attempt, watched.stdout, watched.stderr, watched.stdout_size, watched.stderr_size,
  (select count(*) from notified) as notified, (select count(*) from renewed) as renewed
from (select 1) as always
left join byrote_watched as watched on watched.result_id = %(id)s::uuid;
