-- The effects a run has marked as done. Served by the primary key.
select key
from byrote_once
where result_id = %(id)s::uuid
order by key;
