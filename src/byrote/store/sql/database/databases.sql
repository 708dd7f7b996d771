-- Databases of this server that take connections.
select datname
from pg_database
where datallowconn
  and not datistemplate
order by datname;
