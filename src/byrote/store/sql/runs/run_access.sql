-- To which queue, task and spec runs belong, wherever they lie.
select result_id::text, queue_name, task_path, encode(spec_hash, 'hex') as spec_hash
from byrote_runs
where result_id = any (%(ids)s::uuid[]);
