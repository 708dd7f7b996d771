-- Runs that a client watches now. Deletes rows of runs that no client has watched for a minute.
with clock as materialized (
  select byrote_now() as now
),
expired as (
  delete from byrote_watched
  where until < (select now from clock) - interval '1 minute'
)
select result_id::text
from byrote_watched
where until > (select now from clock);
