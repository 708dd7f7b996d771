-- Where the log of events stands: every transaction below `low` has ended, none at or above `high` had begun.
select
  pg_snapshot_xmin(pg_current_snapshot())::text as low,
  pg_snapshot_xmax(pg_current_snapshot())::text as high,
  (select last_value from byrote_events_seq) as seq;
