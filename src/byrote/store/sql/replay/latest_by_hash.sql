-- The newest run with this spec hash; no shadow of one. If it should have ended, one that ended by itself goes before all others.
-- The hot table has no index on it (each one costs every run), so this reads it.
select result_id::text
from byrote_runs
where spec_hash = decode(%(hash)s, 'hex')
  and shadow is not true
order by (%(ended)s::boolean and status in ('SUCCESSFUL', 'FAILED')) desc, enqueued_at desc, result_id desc
limit 1;
