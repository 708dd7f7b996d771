-- Which of these leases have been settled already, asked after the answer to finish.sql was lost.
-- A row keeps the token of its last lease until the next claim.
with sent as materialized (
  select id, token
  from jsonb_to_recordset(%(leases)s::jsonb) as sent (id uuid, token uuid)
)
select run.result_id::text
from sent
join byrote_task_runs as run on run.result_id = any (array[sent.id]) and run.lease_token = sent.token
where run.leased_until is null
union all
select dead.result_id::text
from sent
join byrote_dead as dead on dead.result_id = sent.id and dead.lease_token = sent.token;
