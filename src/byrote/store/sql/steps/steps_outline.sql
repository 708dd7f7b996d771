-- Steps as steps.sql returns them, for logins that may not see results.
select
  result_id::text, sequence, kind, name, open, null, encode(result_hash, 'hex') as result_hash, attempt, at, wake_at
from byrote_steps
where result_id = any (%(ids)s::uuid[])
order by result_id, sequence;
