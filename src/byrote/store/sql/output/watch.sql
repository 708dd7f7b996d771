-- Watch a run a little longer; gives what its attempt under way had printed when its worker last told.
-- The worker is asked to tell when it has not done so lately. One that does not listen looks by itself every few seconds.
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
  -- Not with every look: each would leave a dead row behind.
  where watched.until < (select now from clock) + interval '5 seconds'
  returning 1
),
asked as (
  select pg_notify('byrote_watch', run.leased_by)
  from run
  where not exists (
    select 1
    from byrote_watched as watched
    where watched.result_id = %(id)s::uuid
      and watched.attempt = run.attempts
      and watched.told_at > (select now from clock) - interval '5 seconds'
  )
)
select
  watched.attempt, watched.stdout, watched.stderr, watched.stdout_size, watched.stderr_size,
  (select count(*) from asked) as asked, (select count(*) from renewed) as renewed
from (select 1) as always
left join byrote_watched as watched on watched.result_id = %(id)s::uuid;
