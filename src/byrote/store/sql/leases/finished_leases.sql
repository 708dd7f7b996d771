-- Which of these leases have been settled, and by which verdict if that is known. Sent after the answer to finish.sql was
-- lost, or when a lease that was settled twice is missing from it.
-- A row keeps the token of its last lease until the next claim. The latest events show runs that have been claimed again
-- or have moved since, by the attempt, of which each claim has one; an event of a sweep does not show what a holder did.
with sent as materialized (
  select id, token, attempt
  from jsonb_to_recordset(%(leases)s::jsonb) as sent (id uuid, token uuid, attempt integer)
),
held as (
  select run.result_id
  from sent
  join byrote_task_runs as run on run.result_id = any (array[sent.id]) and run.lease_token = sent.token
  where run.leased_until is null
  union all
  select dead.result_id
  from sent
  join byrote_dead as dead on dead.result_id = sent.id and dead.lease_token = sent.token
),
logged as (
  select
    event.result_id,
    case event.kind
      when 'Succeeded' then 'S'
      when 'Retried' then 'R'
      when 'Failed' then 'F'
      when 'Cancelled' then 'C'
      when 'Snoozed' then 'Z'
      when 'Released' then 'L'
      else 'X'
    end as verdict
  from (
    select entry.result_id, entry.attempt, latest.kind
    from (
      select kind, runs, attempts, data
      from byrote_events
      order by seq desc
      limit 2000
    ) as latest
    cross join lateral unnest(latest.runs, latest.attempts) as entry (result_id, attempt)
    where latest.kind in ('Succeeded', 'Released')
      or latest.data -> (entry.result_id::text) ? 'reported'
  ) as event
  join sent on sent.id = event.result_id and sent.attempt = event.attempt
  where not exists (
    select 1
    from byrote_task_runs as run
    where run.result_id = any (array[sent.id])
      and run.attempts = sent.attempt
      and run.lease_token <> sent.token
  )
)
select coalesce(held.result_id, logged.result_id)::text as id, logged.verdict
from held
full join logged on logged.result_id = held.result_id;
