-- What a waiting caller needs to know of a run, as cheaply as it can be asked.
select status, return_json, errors_json::text
from byrote_runs
where result_id = %(id)s::uuid;
