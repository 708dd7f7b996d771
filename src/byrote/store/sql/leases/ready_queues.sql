-- Which of these queues have runs to claim. Served by byrote_ready_for_claim.
select requested.queue_name
from unnest(%(queues)s::text[]) as requested (queue_name)
where exists (
  select 1 from byrote_task_runs as run
  where run.status = 'READY' and run.queue_name = requested.queue_name
);
