-- The duties that count, how far they came, and when they are due again; none that has not begun.
select duty, cursor, case when isfinite(next_at) then next_at end as next_at
from byrote_duties
where duty in ('stats', 'depths')
  and cursor is not null;
