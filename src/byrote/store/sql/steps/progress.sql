-- Store the progress of attempts. Only the holder of a lease that has not expired, by the database's clock, may write.
-- Returns the runs it was stored for. The lease's row is locked for key share; a run is skipped if that or its earlier
-- report is locked: see step.sql.
with clock as materialized (
  select byrote_now() as now
),
sent as materialized (
  select id, token, percent, done, total, message, data
  from jsonb_to_recordset(%(reports)s::jsonb) as sent (
    id uuid, token uuid, percent double precision, done double precision, total double precision, message text, data text
  )
),
held as materialized (
  select run.result_id, run.attempts
  from sent
  join byrote_task_runs as run on run.result_id = any (array[sent.id]) and run.lease_token = sent.token
  where run.status || '' = 'RUNNING'
    and run.leased_until > (select now from clock)
  for key share of run skip locked
),
free as materialized (
  select earlier.result_id
  from held
  join byrote_progress as earlier on earlier.result_id = any (array[held.result_id])
  for no key update of earlier skip locked
)
insert into byrote_progress as known (
  result_id, at, began_at, began_percent, percent, done, total, attempt, message, data_json
)
select
  sent.id, (select now from clock), (select now from clock), sent.percent, sent.percent, sent.done, sent.total,
  held.attempts, sent.message, sent.data
from sent
join held on held.result_id = sent.id
left join free on free.result_id = sent.id
where free.result_id is not null
  or not exists (select from byrote_progress as earlier where earlier.result_id = sent.id)
on conflict (result_id) do update
set at = excluded.at,
    began_at = case
      when known.attempt = excluded.attempt and known.percent <= excluded.percent then known.began_at
      else excluded.began_at
    end,
    began_percent = case
      when known.attempt = excluded.attempt and known.percent <= excluded.percent then known.began_percent
      else excluded.began_percent
    end,
    percent = excluded.percent,
    done = excluded.done,
    total = excluded.total,
    attempt = excluded.attempt,
    message = excluded.message,
    data_json = excluded.data_json
returning known.result_id::text;
