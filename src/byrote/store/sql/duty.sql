-- How far a duty came, and when it is due again; null before the first time.
select cursor, case when isfinite(next_at) then next_at end as next_at
from byrote_duties
where duty = %(duty)s;
