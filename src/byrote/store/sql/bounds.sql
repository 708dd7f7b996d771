-- Where the log of events stands: every transaction below this one has ended.
select pg_snapshot_xmin(pg_current_snapshot())::text as low;
