-- Write steps into the ledgers of their runs. Only the holder of a lease that has not expired, by the database's clock,
-- may write.
-- A step has its result. A sleep or a wait (kinds `sleep`, `event`) is written open, with the moment it ends, when the
-- run first reaches it; reached again, it is closed if that moment has passed. A wait takes the oldest signal that no
-- step has taken.
-- A step whose function raised (kind `raised`) is written for replays of this attempt; a later write replaces it. If the
-- task has caught the error and continues, that is the kind `failed`, which stays like a result.
-- Sending it twice changes nothing: the first write stays, and is the answer.
-- The lease's row is locked for key share: that keeps a sweep and a claim away until this has committed, but neither
-- waits for nor delays our own renewals. A run is skipped if another transaction has locked its row, the row of a step that
-- is written again, or the signal that a wait would take. So a step missing from the answer has lost its lease or is
-- locked: held_leases.sql distinguishes them. `status || ''`: see finish.sql.
with clock as materialized (
  select byrote_now() as now
),
sent as materialized (
  select id, token, sequence, kind, name, result, hash, delay_us, place, args_hash
  from jsonb_to_recordset(%(steps)s::jsonb) as sent (
    id uuid, token uuid, sequence integer, kind text, name text, result text, hash text, delay_us bigint,
    place text, args_hash text
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
reached as materialized (
  select
    sent.*, held.attempts, recorded.sequence is not null as recorded,
    coalesce(recorded.kind <> 'raised', false) as known,
    case when recorded.kind <> 'raised' then recorded.open end as open,
    case when recorded.kind <> 'raised' then recorded.wake_at end as wake_at,
    case when recorded.kind <> 'raised' then recorded.result_json end as result_json
  from sent
  join held on held.result_id = sent.id
  left join byrote_steps as recorded on recorded.result_id = sent.id and recorded.sequence = sent.sequence
),
free_steps as materialized (
  select step.result_id, step.sequence
  from reached
  join byrote_steps as step on step.result_id = any (array[reached.id]) and step.sequence = reached.sequence
  where reached.recorded
  for no key update of step skip locked
),
listening as materialized (
  select id, sequence, name, row_number() over (partition by id, name order by sequence) as ordinal
  from reached
  where kind = 'event'
    and coalesce(open, true)
),
found as materialized (
  select listening.id, listening.sequence, oldest.signal_id
  from listening
  cross join lateral (
    select waiting.signal_id
    from byrote_signals as waiting
    where waiting.result_id = listening.id
      and waiting.name = listening.name
      and waiting.taken_by is null
    order by waiting.seq
    offset listening.ordinal - 1
    limit 1
  ) as oldest
),
free_signals as materialized (
  select signal.result_id, signal.signal_id, found.sequence
  from found
  join byrote_signals as signal on signal.result_id = any (array[found.id]) and signal.signal_id = found.signal_id
  for no key update of signal skip locked
),
locked as materialized (
  select id, sequence from reached where recorded
  except
  select result_id, sequence from free_steps
  union all
  (
    select id, sequence from found
    except
    select result_id, sequence from free_signals
  )
),
requested as materialized (
  select *
  from reached
  where id not in (select id from locked)
),
received as (
  update byrote_signals as signal
  set taken_by = free_signals.sequence
  from free_signals
  join requested on requested.id = free_signals.result_id and requested.sequence = free_signals.sequence
  where signal.result_id = free_signals.result_id
    and signal.signal_id = free_signals.signal_id
  returning signal.result_id, signal.taken_by as sequence, signal.payload_json, signal.payload_hash
),
written as (
  insert into byrote_steps as step (
    result_id, sequence, attempt, at, wake_at, open, kind, name, result_json, result_hash, place, args_hash
  )
  select
    requested.id, requested.sequence, requested.attempts, (select now from clock),
    (select now from clock) + requested.delay_us * interval '1 microsecond',
    requested.kind not in ('step', 'raised', 'failed')
      and received.sequence is null
      and coalesce(requested.delay_us > 0, true),
    requested.kind, requested.name, coalesce(requested.result, received.payload_json),
    coalesce(decode(requested.hash, 'hex'), received.payload_hash), requested.place, decode(requested.args_hash, 'hex')
  from requested
  left join received on received.result_id = requested.id and received.sequence = requested.sequence
  on conflict (result_id, sequence) do update
  set open = case
        when step.kind = 'raised' then excluded.open
        else excluded.result_json is null and coalesce(step.wake_at > (select now from clock), true)
      end,
      attempt = case when step.kind = 'raised' then excluded.attempt else step.attempt end,
      at = case when step.kind = 'raised' then excluded.at else step.at end,
      wake_at = case when step.kind = 'raised' then excluded.wake_at else step.wake_at end,
      kind = excluded.kind,
      name = excluded.name,
      place = excluded.place,
      args_hash = excluded.args_hash,
      result_json = excluded.result_json,
      result_hash = excluded.result_hash
  where step.open
    or step.kind = 'raised'
  returning
    step.result_id, step.sequence, step.open, step.wake_at, step.result_json, step.kind, step.name, step.result_hash,
    step.place, step.args_hash
),
-- The event has, by run and sequence, each step's kind, name, hash of the result, end of a wait in microseconds, place and
-- hash of the arguments. verify_written.sql returns the same of the stored steps.
logged as (
  insert into byrote_events (at, kind, runs, attempts, moves, data)
  select (select now from clock), 'StepStored', '{}', '{}', '{}', jsonb_object_agg(result_id, steps)
  from (
    select
      result_id,
      jsonb_object_agg(
        sequence,
        jsonb_build_array(
          kind, name, encode(result_hash, 'hex'), byrote_micros(wake_at), place, encode(args_hash, 'hex')
        )
      ) as steps
    from written
    group by result_id
  ) as by_run
  having count(*) > 0
)
select
  requested.id::text,
  requested.sequence,
  -- Written by another copy of this statement, not visible yet: the caller looks it up again at once.
  coalesce(written.open, requested.open, requested.kind not in ('step', 'raised', 'failed')) as open,
  case when written.sequence is null then requested.result_json else written.result_json end as result_json,
  case
    when written.sequence is null and not requested.known then 0
    else byrote_micros(coalesce(written.wake_at, requested.wake_at)) - byrote_micros((select now from clock))
  end as left_us,
  written.sequence is not null as written
from requested
left join written on written.result_id = requested.id and written.sequence = requested.sequence;
