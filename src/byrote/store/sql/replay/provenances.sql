-- Environments by their numbers.
select provenance_id, encode(hash, 'hex') as hash, doc::text
from byrote_provenance
where provenance_id = any (%(ids)s::integer[])
order by provenance_id;
