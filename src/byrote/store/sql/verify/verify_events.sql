-- Every move of every run, run by run and in order: sorted on disk by the server, read through a cursor.
select
  log.result_id::text, log.xid::text::bigint as xid, log.seq, log.ordinal, log.at, log.kind, log.schema, log.attempt,
  log.move, log.worker, log.leased_until, log.data::text, log.lease_token::text, log.digest
from byrote_event_log as log
where num_nulls(log.result_id, log.attempt, log.move) = 0  -- The others are malformed: see verify_malformed.sql.
order by log.result_id, log.move, log.seq;
