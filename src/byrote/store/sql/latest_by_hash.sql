-- The newest run with this spec hash. The hot table has no index on it (each one costs every run), so this reads it.
select result_id::text
from byrote_runs
where spec_hash = decode(%(hash)s, 'hex')
order by enqueued_at desc, result_id desc
limit 1;
