-- Take every duty that is due and that nobody else is taking this instant.
update byrote_duties as duty
set next_at = (select byrote_now()) + taken.every,
    holder = %(worker)s
from (
  select due.ctid as place, wanted.every
  from byrote_duties as due
  join unnest(%(duties)s::text[], %(every)s::interval[]) as wanted (duty, every) using (duty)
  where due.next_at <= (select byrote_now())
  for update of due skip locked
) as taken
where duty.ctid = taken.place
returning duty.duty, duty.cursor;
