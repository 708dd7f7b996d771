-- The newest run with this spec hash, without shadow runs. With `ended`, runs that ended by themselves come first.
-- The hot table has no index on the hash (each index costs every run), so this reads all of it.
select result_id::text
from byrote_runs
where spec_hash = decode(%(hash)s, 'hex')
  and shadow is not true
order by (%(ended)s::boolean and status in ('SUCCESSFUL', 'FAILED')) desc, enqueued_at desc, result_id desc
limit 1;
