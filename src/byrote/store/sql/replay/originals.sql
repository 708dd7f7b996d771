-- The newest runs of a task that ended by themselves, newest first, for a replay to be compared with.
-- Without runs answered from a memo: another run computed their results.
select result_id::text
from byrote_runs
where task_path = %(task)s
  and shadow is not true
  and memo_of is null
  and (%(version)s::integer is null or task_version = %(version)s::integer)
  and (%(labels)s::text is null or labels @> %(labels)s::jsonb)
  and (status = 'FAILED' or (status = 'SUCCESSFUL' and not %(failed)s::boolean))
  and finished_at >= coalesce(%(since)s::timestamptz, (select byrote_now()) - %(ago)s::interval, '-infinity')
order by result_id desc
limit %(limit)s;
