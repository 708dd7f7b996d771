-- Write the results of steps that their runs reached for the first time. Only the holder of a lease that has not expired,
-- by the database's clock, may write.
-- The usual case of step.sql, at four fifths of its CPU time. A step that is in the ledger already, whose lease is lost or
-- whose run is locked is missing from the answer: step.sql is sent for those.
-- The lease's row is locked for key share, as in step.sql.
with clock as materialized (
  select byrote_now() as now
),
sent as materialized (
  select id, token, sequence, kind, name, result, hash, place, args_hash
  from jsonb_to_recordset(%(steps)s::jsonb) as sent (
    id uuid, token uuid, sequence integer, kind text, name text, result text, hash text, place text, args_hash text
  )
),
held as materialized (
  select run.result_id, run.attempts
  from (select distinct id, token from sent) as lease
  join byrote_task_runs as run on run.result_id = any (array[lease.id]) and run.lease_token = lease.token
  where run.status || '' = 'RUNNING'
    and run.leased_until > (select now from clock)
  for key share of run skip locked
),
written as (
  insert into byrote_steps as step (
    result_id, sequence, attempt, at, open, kind, name, result_json, result_hash, place, args_hash
  )
  select
    sent.id, sent.sequence, held.attempts, (select now from clock), false, sent.kind, sent.name, sent.result,
    decode(sent.hash, 'hex'), sent.place, decode(sent.args_hash, 'hex')
  from sent
  join held on held.result_id = sent.id
  where not exists (
    select from byrote_steps as recorded where recorded.result_id = sent.id and recorded.sequence = sent.sequence
  )
  on conflict (result_id, sequence) do nothing
  returning
    step.result_id, step.sequence, step.result_json, step.kind, step.name, step.result_hash, step.place, step.args_hash
),
-- As in step.sql, without the end of a wait.
logged as (
  insert into byrote_events (at, kind, runs, attempts, moves, data)
  select (select now from clock), 'StepStored', '{}', '{}', '{}', jsonb_object_agg(result_id, steps)
  from (
    select
      result_id,
      jsonb_object_agg(
        sequence,
        jsonb_build_array(kind, name, encode(result_hash, 'hex'), null, place, encode(args_hash, 'hex'))
      ) as steps
    from written
    group by result_id
  ) as by_run
  having count(*) > 0
)
select result_id::text, sequence, false as open, result_json, null::bigint as left_us, true as written
from written;
