-- Every worker that has not been pruned, and whether it has been seen in the last 45 seconds.
select
  worker_id, host, pid, started_at, seen_at, idle, stopping, hands, concurrency, running, finished, version, python,
  queues, tasks,
  seen_at > (select byrote_now()) - interval '45 seconds' as alive
from byrote_workers
order by started_at;
