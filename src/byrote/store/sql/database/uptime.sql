-- How many seconds ago this server was started, by its own clock.
select extract(epoch from clock_timestamp() - pg_postmaster_start_time())::float8 as seconds
