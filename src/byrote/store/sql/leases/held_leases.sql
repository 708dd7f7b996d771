-- Which of these leases are held now. Never waits: rows are read, not locked.
with clock as materialized (
  select byrote_now() as now
),
sent as materialized (
  select id, token
  from jsonb_to_recordset(%(leases)s::jsonb) as sent (id uuid, token uuid)
)
select run.result_id::text
from sent
join byrote_task_runs as run on run.result_id = any (array[sent.id]) and run.lease_token = sent.token
where run.status || '' = 'RUNNING'  -- Keeps the partial index out: see finish.sql.
  and run.leased_until > (select now from clock);
