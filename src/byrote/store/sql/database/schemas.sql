-- Schemas of this database that contain Byrote's tables, independent of the search path.
select space.nspname
from pg_class as ledger
join pg_namespace as space on space.oid = ledger.relnamespace
where ledger.relname = 'byrote_schema'
  and ledger.relkind = 'r'
order by space.nspname;
