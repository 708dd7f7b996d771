-- Databases of this server that accept connections.
select datname
from pg_database
where datallowconn
  and not datistemplate
order by datname;
