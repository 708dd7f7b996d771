-- Settle attempts that succeeded with nothing but a result: what finish.sql does with a bare S, at less cost.
-- Each is [id, token, attempt, result, hash, usage]; `provenance` is the environment of all of them.
-- The fence, the log and the answer are as in finish.sql, and so is the reason for `status || ''` and `any (array[…])`.
with clock as materialized (
  select byrote_now() as now, set_config('lock_timeout', '250ms', true)  -- The longest wait for a row: see store/locks.py.
),
sent as materialized (
  select
    (entry ->> 0)::uuid as id, (entry ->> 1)::uuid as token, (entry ->> 2)::integer as attempt, entry ->> 3 as result,
    entry ->> 4 as hash, nullif(entry -> 5, 'null') as usage
  from jsonb_array_elements(%(successes)s::jsonb) as entry
),
settled as (
  update byrote_task_runs as run
  set status = 'SUCCESSFUL',
      charged = run.charged + 1,
      moves = run.moves + 1,
      return_json = sent.result,
      result_hash = decode(sent.hash, 'hex'),
      finished_at = (select now from clock),
      leased_until = null,
      provenance = byrote_noted(run.provenance, run.attempts, %(provenance)s::integer),
      usage = byrote_appended(run.usage, sent.usage, 0)
  from sent
  where run.result_id = any (array[sent.id])
    and run.lease_token = sent.token
    and run.status || '' = 'RUNNING'
    and run.leased_until > (select now from clock)
  returning run.result_id, sent.attempt, run.moves, run.leased_by, run.result_hash
),
logged as (
  insert into byrote_events (schema, at, kind, worker, runs, attempts, moves, digests)
  select
    3, (select now from clock), 'Succeeded', min(leased_by), array_agg(result_id), array_agg(attempt), array_agg(moves),
    array_agg(result_hash)
  from settled
  having count(*) > 0
)
select result_id::text
from settled;
