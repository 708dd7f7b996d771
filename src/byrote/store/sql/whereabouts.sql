-- To which queue and task runs belong, wherever they lie.
select result_id::text, queue_name, task_path
from byrote_runs
where result_id = any (%(ids)s::uuid[]);
