-- Our indexes and constraints, whether each is valid, and our daily partitions.
select 'index' as kind, index.relname as name, pg_index.indisvalid and pg_index.indisready as good
from pg_index
join pg_class as index on index.oid = pg_index.indexrelid
join pg_class as owner on owner.oid = pg_index.indrelid
where owner.relname like 'byrote\_%%'
  and owner.relnamespace = quote_ident(byrote_home())::regnamespace
union all
select 'constraint', owner.relname || '.' || pg_constraint.conname, pg_constraint.convalidated
from pg_constraint
join pg_class as owner on owner.oid = pg_constraint.conrelid
where owner.relname like 'byrote\_%%'
  and pg_constraint.contype = 'c'
  and pg_constraint.coninhcount = 0
  and owner.relnamespace = quote_ident(byrote_home())::regnamespace
union all
select 'partition', parent.relname || ' ' || child.relname, true
from pg_inherits
join pg_class as parent on parent.oid = inhparent
join pg_class as child on child.oid = inhrelid
where parent.relname like 'byrote\_%%'
  and parent.relkind = 'p'
  and parent.relnamespace = quote_ident(byrote_home())::regnamespace
order by 1, 2;
