-- Which of these runs cannot be updated now because another transaction has locked their rows.
-- Never waits. A run that does not exist, or that another statement has just deleted, is not locked for long.
with sent as materialized (
  select id from unnest(%(ids)s::uuid[]) as sent (id)
),
free as materialized (
  select run.result_id
  from sent
  join byrote_task_runs as run on run.result_id = any (array[sent.id])
  for no key update of run skip locked
)
select run.result_id::text
from sent
join byrote_task_runs as run on run.result_id = any (array[sent.id])
where run.result_id not in (select result_id from free);
