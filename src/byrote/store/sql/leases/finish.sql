-- Settle attempts by their verdicts. Only the holder of a lease that has not expired, by the database's clock, may
-- settle.
-- Verdicts: S succeeded, R retry later, F failed for good (moves to the dead letters), C cancelled, Z snoozed, L released
-- unharmed, X crashed through no proven fault of the run.
-- A Z may name what it waits for (`wait`: sleep or event) and which `event`. If its signal has arrived meanwhile, it does
-- not wait: `parked` calls byrote_signalled, and again if it had to wait for a signal that was changing the row.
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
    id, token,
    case
      when verdict = 'R' and (
        select run.charged + 1 >= run.max_attempts from byrote_task_runs as run where run.result_id = sent.id
      )
      then 'F'
      else verdict
    end as verdict,
    result, hash, delay_us, error || jsonb_build_object('at', (select now from clock)) as error, output,
    wait, event, attempt,
    nullif(coalesce((more ->> 'provenance')::integer, %(provenance)s::integer), 0) as provenance, more -> 'usage' as usage,
    more -> 'memo' as memo
  from jsonb_to_recordset(%(verdicts)s::jsonb) as sent (
    id uuid, token uuid, verdict "char", result text, hash text, error jsonb, delay_us bigint, output jsonb,
    wait text, event text, more jsonb, attempt integer
  )
),
settled as (
  update byrote_task_runs as run
  set status = case
        when sent.verdict = 'S' then 'SUCCESSFUL'
        when sent.verdict = 'C' or run.cancel_requested_at is not null then 'CANCELLED'
        when sent.verdict in ('R', 'Z') and sent.delay_us > 0 then 'WAITING'
        else 'READY'
      end,
      wait_reason = case
        when run.cancel_requested_at is not null or coalesce(sent.delay_us, 0) <= 0 then null
        when sent.verdict = 'R' then 'retry'
        when sent.verdict = 'Z' then coalesce(sent.wait, 'snooze')
      end,
      run_after = case
        when sent.delay_us > 0 then (select now from clock) + sent.delay_us * interval '1 microsecond'
        else run.run_after
      end,
      rank = case
        when sent.delay_us > 0
        then run.rank + byrote_micros((select now from clock)) + sent.delay_us - byrote_micros(run.run_after)
        else run.rank
      end,
      charged = run.charged + case when sent.verdict in ('S', 'R') then 1 else 0 end,
      losses = run.losses + case when sent.verdict = 'X' then 1 else 0 end,
      moves = run.moves + 1,
      return_json = sent.result,
      result_hash = decode(sent.hash, 'hex'),
      errors_json = case
        when sent.error is null then run.errors_json
        when jsonb_array_length(run.errors_json) >= 50 then run.errors_json - 1 || sent.error
        else coalesce(run.errors_json, '[]') || sent.error
      end,
      finished_at = case
        when sent.verdict in ('S', 'C') or run.cancel_requested_at is not null then (select now from clock)
      end,
      leased_until = null,
      provenance = byrote_noted(run.provenance, run.attempts, sent.provenance),
      usage = case
        when sent.usage is null then run.usage
        when jsonb_array_length(run.usage) >= 50 then run.usage - 0 || sent.usage
        else coalesce(run.usage, '[]') || sent.usage
      end
  from sent
  where sent.verdict <> 'F'
    and sent.event is null
    and run.result_id = any (array[sent.id])
    and run.lease_token = sent.token
    and run.status || '' = 'RUNNING'
    and run.leased_until > (select now from clock)
  returning
    run.result_id, coalesce(sent.attempt, run.attempts) as attempts, run.moves, run.leased_by, run.queue_name, run.status,
    case when run.status = 'CANCELLED' then 'C' else sent.verdict end as verdict, sent.verdict as sent_verdict, run.wait_reason,
    sent.delay_us, sent.error, sent.output,
    case when sent.error is null then run.result_hash else byrote_error_hash(sent.error) end as digest
),
parked as (
  update byrote_task_runs as run
  set (status, wait_reason, run_after, rank) = (
        select
          case when run.cancel_requested_at is not null then 'CANCELLED' when signal.came then 'READY' else 'WAITING' end,
          case when run.cancel_requested_at is null and not signal.came then sent.wait end,
          case
            when signal.came then run.run_after
            else (select now from clock) + sent.delay_us * interval '1 microsecond'
          end,
          case
            when signal.came then run.rank
            else run.rank + byrote_micros((select now from clock)) + sent.delay_us - byrote_micros(run.run_after)
          end
        from (select byrote_signalled(run.result_id, sent.event) or sent.delay_us <= 0 as came offset 0) as signal
      ),
      moves = run.moves + 1,
      finished_at = case when run.cancel_requested_at is not null then (select now from clock) end,
      leased_until = null,
      provenance = byrote_noted(run.provenance, run.attempts, sent.provenance),
      usage = case
        when sent.usage is null then run.usage
        when jsonb_array_length(run.usage) >= 50 then run.usage - 0 || sent.usage
        else coalesce(run.usage, '[]') || sent.usage
      end
  from sent
  where sent.event is not null
    and run.result_id = any (array[sent.id])
    and run.lease_token = sent.token
    and run.status || '' = 'RUNNING'
    and run.leased_until > (select now from clock)
  returning
    run.result_id, coalesce(sent.attempt, run.attempts) as attempts, run.moves, run.leased_by, run.queue_name, run.status,
    case when run.status = 'CANCELLED' then 'C' else sent.verdict end as verdict, sent.verdict as sent_verdict, run.wait_reason,
    sent.delay_us, sent.error, sent.output
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
    run.*, sent.error, sent.output, sent.provenance as measured, sent.usage as used,
    coalesce(sent.attempt, run.attempts) as attempt
),
failed as (
  insert into byrote_dead (
    result_id, workflow_id, replay_of, lease_token, rank, run_after, enqueued_at, started_at, last_attempted_at,
    finished_at, cancel_requested_at, timeout_ms, task_version, attempts, charged, losses, max_attempts, moves,
    priority, status, queue_name, task_path, leased_by, spec_hash, worker_ids, spec_json, errors_json, retry_json,
    labels, traceparent, as_of, provenance, usage, shadow, unique_key
  )
  select
    result_id, workflow_id, replay_of, lease_token, rank, run_after, enqueued_at, started_at, last_attempted_at,
    (select now from clock), cancel_requested_at, timeout_ms, task_version, attempts, charged + 1, losses,
    max_attempts, moves + 1, priority, 'FAILED', queue_name, task_path, leased_by, spec_hash, worker_ids, spec_json,
    case
      when jsonb_array_length(errors_json) >= 50 then errors_json - 1 || error
      else coalesce(errors_json, '[]') || error
    end,
    retry_json, labels, traceparent, as_of, byrote_noted(provenance, attempts, measured),
    case
      when used is null then usage
      when jsonb_array_length(usage) >= 50 then usage - 0 || used
      else coalesce(usage, '[]') || used
    end,
    shadow, unique_key
  from deleted
),
accepted as (
  select
    result_id, attempts, moves, leased_by, status, wait_reason, verdict, sent_verdict, delay_us, error, output, digest
  from settled
  union all
  select result_id, attempts, moves, leased_by, status, wait_reason, verdict, sent_verdict, delay_us, error, output, null
  from parked
  union all
  select
    result_id, attempt, moves + 1, leased_by, 'FAILED', null, 'F', 'F', null, error, output, byrote_error_hash(error)
  from deleted
),
printed as (
  insert into byrote_outputs (at, result_id, attempt, stdout, stderr, stdout_dropped, stderr_dropped)
  select
    (select now from clock), result_id, attempts, output ->> 'stdout', output ->> 'stderr',
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
      when 'S' then 'Succeeded'
      when 'R' then 'Retried'
      when 'F' then 'Failed'
      when 'C' then 'Cancelled'
      when 'Z' then 'Snoozed'
      when 'L' then 'Released'
      else 'Crashed'
    end,
    min(leased_by), array_agg(result_id), array_agg(attempts), array_agg(moves),
    case when count(digest) > 0 then array_agg(digest) end,
    jsonb_object_agg(
      result_id,
      jsonb_build_object(
        'delay_us', delay_us, 'kind', error -> 'kind', 'type', error -> 'type',
        'said', sent_verdict, 'status', status, 'wait', wait_reason
      )
    ) filter (where verdict not in ('S', 'L'))
  from accepted
  group by verdict
),
remembered as (
  select byrote_remember(
    entry.id, decode(entry.memo ->> 'code', 'hex'), (entry.memo ->> 'keep_us')::bigint * interval '1 microsecond', entry.result,
    decode(entry.hash, 'hex')
  )
  from (
    select sent.id, sent.memo, sent.result, sent.hash
    from sent
    join settled on settled.result_id = sent.id
    where (select count(*) from sent where memo is not null) > 0  -- Otherwise every row would be compared with every other.
      and sent.memo is not null
      and settled.verdict = 'S'
    -- In one order everywhere, so that two workers that remember the same specs do not deadlock.
    order by sent.memo ->> 'spec', sent.memo ->> 'code'
  ) as entry
),
notified as (
  select pg_notify('byrote_ready', queue_name)
  from (
    select queue_name from settled where status = 'READY'
    union
    select queue_name from parked where status = 'READY'
  ) as fresh
  where exists (select 1 from byrote_workers as worker where worker.idle and fresh.queue_name = any (worker.queues))
)
select accepted.result_id::text, accepted.verdict::text, (select count(*) from notified) as notified,
  (select count(*) from remembered) as remembered
from accepted;
