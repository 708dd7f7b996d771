-- Seconds since the start of this server, by its own clock.
select extract(epoch from clock_timestamp() - pg_postmaster_start_time())::float8 as seconds
