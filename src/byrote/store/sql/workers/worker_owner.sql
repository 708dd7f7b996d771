-- Whose a worker is, and what it serves.
select holder::text, queues, tasks
from byrote_workers
where worker_id = %(worker)s;
