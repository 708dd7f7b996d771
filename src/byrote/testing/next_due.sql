-- When the next waiting run of these tasks becomes due. Without `deferred`, only runs that their own task made wait.
-- A wait for a signal is never due: its timeout passes only when the test moves the clock.
select min(run_after) as due
from byrote_task_runs
where status = 'WAITING'
  and task_path || '@' || task_version = any (%(tasks)s::text[])
  and (%(queue)s::text is null or queue_name = %(queue)s)
  and (wait_reason in ('retry', 'snooze', 'sleep') or (%(deferred)s and wait_reason = 'due'));
