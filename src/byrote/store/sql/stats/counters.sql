-- The duties that count, their cursors, and when they are due again; only those that have begun.
select duty, cursor, case when isfinite(next_at) then next_at end as next_at
from byrote_duties
where duty in ('stats', 'depths')
  and cursor is not null;
