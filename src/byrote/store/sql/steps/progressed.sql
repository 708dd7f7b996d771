-- When a run last told how far it has come.
select at
from byrote_progress
where result_id = %(id)s::uuid;
