-- The queue, task and spec hash of runs, in whichever table they are.
select result_id::text, queue_name, task_path, encode(spec_hash, 'hex') as spec_hash
from byrote_runs
where result_id = any (%(ids)s::uuid[]);
