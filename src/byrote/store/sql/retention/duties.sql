-- Take every duty that is due and that no other worker is taking at the same time.
-- A duty is never scheduled further ahead than its interval: one that is due later was scheduled before the clock was set
-- back, and is due now. Without this, all housekeeping would stop for as long as the clock was set back.
update byrote_duties as duty
set next_at = (select byrote_now()) + taken.every,
    holder = %(worker)s
from (
  select due.ctid as tid, requested.every
  from byrote_duties as due
  join unnest(%(duties)s::text[], %(every)s::interval[]) as requested (duty, every) using (duty)
  where (due.next_at <= (select byrote_now()) or due.next_at > (select byrote_now()) + requested.every)
  for update of due skip locked
) as taken
where duty.ctid = taken.tid
returning duty.duty, duty.cursor;
