-- Which of these runs are unfinished. Sent for runs that held a unique key when the statement that met them began.
select result_id::text
from byrote_task_runs
where result_id = any (%(ids)s::uuid[])
  and status in ('WAITING', 'READY', 'RUNNING');
