-- Settle attempts by their verdicts. Only the holder of a lease that has not expired, by the database's clock, may
-- settle.
-- Verdicts: S succeeded, R retry later, F failed for good (moves to the dead letters), C cancelled, Z snoozed, L released
-- unharmed, X crashed through no proven fault of the run.
-- A Z may name what it waits for (`wait`: sleep or event) and which `event`. If its signal has arrived meanwhile, it does
-- not wait: `settled` calls byrote_signalled, and again if it had to wait for a signal that was changing the row.
-- The budget is enforced here, independent of the judge: an R without attempts left is an F.
-- A run whose cancellation was requested does not come back: R, Z, L and X become C.
-- The event has the attempt that the sender named, not the row's: if they ever differed, `byrote verify` would report it.
-- `provenance` is the environment of all of them; a verdict with another has it in `more` (0: unknown).
-- An S whose result is to be remembered has in `more` the hash of its code and how long to remember it (`memo`).
-- Returns the accepted ids and their verdicts; a missing one lost its lease. The token stays in the row, so that a sender
-- whose answer was lost can look it up (finished_leases.sql).
-- `status || ''` keeps the fence out of the partial lease index: with stale statistics the planner would walk every
-- running row for each one sent (65 ms instead of 0.25 ms for ten rows).
-- `any (array[…])` leaves the planner one way to find a run, by its id: with statistics of an empty table it would walk
-- all of the primary key for each batch, and go on doing so while the table grows (34 ms instead of 7 for two hundred
-- rows).
with clock as materialized (
  select byrote_now() as now, set_config('lock_timeout', '250ms', true)  -- The longest wait for a row: see store/locks.py.
),
sent as materialized (
  select
    id, token, attempt, result, hash, output, delay_us, event,
    case
      when verdict = 'R' and (
        select run.charged + 1 >= run.max_attempts from byrote_task_runs as run where run.result_id = sent.id
      )
      then 'F'
      else verdict
    end as verdict,
    case verdict when 'R' then 'retry' when 'Z' then coalesce(wait, 'snooze') end as wait,
    error || (select jsonb_build_object('at', now) from clock) as error,
    nullif(coalesce((more ->> 'provenance')::integer, %(provenance)s::integer), 0) as provenance,
    more -> 'usage' as usage, more -> 'memo' as memo
  from jsonb_to_recordset(%(verdicts)s::jsonb) as sent (
    id uuid, token uuid, verdict "char", result text, hash text, error jsonb, delay_us bigint, output jsonb,
    wait text, event text, more jsonb, attempt integer
  )
),
settled as (
  update byrote_task_runs as run
  set (status, wait_reason, run_after, rank) = (
        select
          case
            when sent.verdict = 'S' then 'SUCCESSFUL'
            when sent.verdict = 'C' or run.cancel_requested_at is not null then 'CANCELLED'
            when pause.us > 0 and sent.wait is not null then 'WAITING'
            else 'READY'
          end,
          case when pause.us > 0 and run.cancel_requested_at is null then sent.wait end,
          case
            when pause.us > 0 then (select now from clock) + pause.us * interval '1 microsecond'
            else run.run_after
          end,
          case
            when pause.us > 0 then run.rank + byrote_micros((select now from clock)) + pause.us - byrote_micros(run.run_after)
            else run.rank
          end
        from (
          select case when sent.event is null or not byrote_signalled(run.result_id, sent.event) then sent.delay_us end as us
        ) as pause
      ),
      charged = run.charged + case when sent.verdict in ('S', 'R') then 1 else 0 end,
      losses = run.losses + case when sent.verdict = 'X' then 1 else 0 end,
      moves = run.moves + 1,
      return_json = sent.result,
      result_hash = decode(sent.hash, 'hex'),
      errors_json = byrote_appended(run.errors_json, sent.error, 1),
      finished_at = case
        when sent.verdict in ('S', 'C') or run.cancel_requested_at is not null then (select now from clock)
      end,
      leased_until = null,
      provenance = byrote_noted(run.provenance, run.attempts, sent.provenance),
      usage = byrote_appended(run.usage, sent.usage, 0)
  from sent
  where sent.verdict <> 'F'
    and run.result_id = any (array[sent.id])
    and run.lease_token = sent.token
    and run.status || '' = 'RUNNING'
    and run.leased_until > (select now from clock)
  returning
    run.result_id, coalesce(sent.attempt, run.attempts) as attempt, run.moves, run.leased_by, run.queue_name, run.status,
    run.wait_reason, case when run.status = 'CANCELLED' then 'C' else sent.verdict end as verdict,
    sent.verdict as sent_verdict, sent.delay_us, sent.error, sent.output, sent.memo,
    case when sent.memo is not null then sent.result end as result,
    case when sent.error is null then run.result_hash else byrote_error_hash(sent.error) end as digest
),
deleted as (
  delete from byrote_task_runs as run
  using sent
  where sent.verdict = 'F'
    and run.result_id = any (array[sent.id])
    and run.lease_token = sent.token
    and run.status || '' = 'RUNNING'
    and run.leased_until > (select now from clock)
  returning
    run, run.result_id, coalesce(sent.attempt, run.attempts) as attempt, run.moves + 1 as moves, run.leased_by,
    sent.error, sent.output, sent.provenance, sent.usage
),
failed as (
  insert into byrote_dead
  select (dead.run).*
  from (
    select byrote_failed(run, (select now from clock), error, charged => 1, environment => provenance, used => usage) as run
    from deleted
    offset 0  -- One call for all columns.
  ) as dead
),
accepted as (
  select result_id, attempt, moves, leased_by, status, wait_reason, verdict, sent_verdict, delay_us, error, output, digest
  from settled
  union all
  select result_id, attempt, moves, leased_by, 'FAILED', null, 'F', 'F', null, error, output, byrote_error_hash(error)
  from deleted
),
printed as (
  insert into byrote_outputs (at, result_id, attempt, stdout, stderr, stdout_dropped, stderr_dropped)
  select
    (select now from clock), result_id, attempt, output ->> 'stdout', output ->> 'stderr',
    (output ->> 'stdout_dropped')::bigint, (output ->> 'stderr_dropped')::bigint
  from accepted
  where output is not null
),
logged as (
  insert into byrote_events (schema, at, kind, worker, runs, attempts, moves, digests, data)
  select
    3,
    (select now from clock),
    case verdict
      when 'S' then 'Succeeded' when 'R' then 'Retried' when 'F' then 'Failed' when 'C' then 'Cancelled'
      when 'Z' then 'Snoozed' when 'L' then 'Released' else 'Crashed'
    end,
    min(leased_by), array_agg(result_id), array_agg(attempt), array_agg(moves),
    case when count(digest) > 0 then array_agg(digest) end,
    jsonb_object_agg(
      result_id,
      jsonb_build_object(
        'delay_us', delay_us, 'kind', error -> 'kind', 'type', error -> 'type',
        'reported', sent_verdict, 'status', status, 'wait', wait_reason
      )
    ) filter (where verdict not in ('S', 'L'))
  from accepted
  group by verdict
),
remembered as (
  select byrote_remember(result_id, memo, result, digest)
  from settled
  where memo is not null
    and verdict = 'S'
  order by memo ->> 'spec', memo ->> 'code'  -- One order everywhere, so that workers with the same specs do not deadlock.
)
select
  result_id::text, verdict::text, (select count(*) from remembered) as remembered,
  (select byrote_wake(array(select queue_name from settled where status = 'READY'))) as notified
from accepted;
