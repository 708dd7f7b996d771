-- Every worker that has not been forgotten, and whether it still says it lives.
select
  worker_id, host, pid, started_at, seen_at, idle, stopping, hands, concurrency, running, finished, version, python,
  queues, tasks,
  seen_at > (select byrote_now()) - interval '45 seconds' as alive
from byrote_workers
order by started_at;
