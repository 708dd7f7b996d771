-- Which of these queues have something to claim. Served by byrote_ready_for_claim.
select wanted.queue_name
from unnest(%(queues)s::text[]) as wanted (queue_name)
where exists (
  select 1 from byrote_task_runs as run
  where run.status = 'READY' and run.queue_name = wanted.queue_name
);
