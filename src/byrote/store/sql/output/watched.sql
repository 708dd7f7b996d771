-- Which runs somebody watches now; forgets those nobody has for a while.
with clock as materialized (
  select byrote_now() as now
),
forgotten as (
  delete from byrote_watched
  where until < (select now from clock) - interval '1 minute'
)
select result_id::text
from byrote_watched
where until > (select now from clock);
