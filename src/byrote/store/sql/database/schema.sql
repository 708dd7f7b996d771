-- Which migrations this database has, or nothing when it has none.
select version, name, checksum
from byrote_schema
order by version;
