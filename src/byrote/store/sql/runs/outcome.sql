-- The status, result and errors of a run for a waiting caller, by the cheapest query.
select status, return_json, errors_json::text
from byrote_runs
where result_id = %(id)s::uuid;
