-- The artifacts of a run, attempt by attempt, then by name. Served by the primary key.
select result_id::text, attempt, name, encode(hash, 'hex') as hash, size, media_type, location, at
from byrote_artifacts
where result_id = %(id)s::uuid
order by attempt, name;
