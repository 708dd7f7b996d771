-- When a run last reported progress.
select at
from byrote_progress
where result_id = %(id)s::uuid;
