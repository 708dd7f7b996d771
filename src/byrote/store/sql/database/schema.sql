-- The migrations that this database has.
select version, name, checksum
from byrote_schema
order by version;
