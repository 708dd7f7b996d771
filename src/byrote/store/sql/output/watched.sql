-- Runs that a client watches now. Deletes rows of runs that no client has watched for a minute, except locked ones.
with clock as materialized (
  select byrote_now() as now
),
expired as (
  delete from byrote_watched
  where ctid = any (array(
    select watched.ctid
    from byrote_watched as watched
    where watched.until < (select now from clock) - interval '1 minute'
    for update skip locked
  ))
)
select result_id::text
from byrote_watched
where until > (select now from clock);
