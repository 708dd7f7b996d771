-- Take every duty that is due and that no other worker is taking at the same time.
-- A duty is never put off for longer than its pause: one that is due later than that was put off by a clock that has
-- been set back since, and is due now. Without this, all housekeeping would stand still for as long as the step was.
update byrote_duties as duty
set next_at = (select byrote_now()) + taken.every,
    holder = %(worker)s
from (
  select due.ctid as place, wanted.every
  from byrote_duties as due
  join unnest(%(duties)s::text[], %(every)s::interval[]) as wanted (duty, every) using (duty)
  where (due.next_at <= (select byrote_now()) or due.next_at > (select byrote_now()) + wanted.every)
  for update of due skip locked
) as taken
where duty.ctid = taken.place
returning duty.duty, duty.cursor;
