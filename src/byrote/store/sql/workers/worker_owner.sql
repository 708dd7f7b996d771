-- The holder of a worker, and the queues and tasks it serves.
select holder::text, queues, tasks
from byrote_workers
where worker_id = %(worker)s;
