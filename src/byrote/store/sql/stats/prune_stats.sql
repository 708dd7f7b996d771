-- Delete counts by minute that are past their retention. Rows that another transaction has locked are left for the next
-- time.
with deleted as (
  delete from byrote_stats as stats
  where stats.ctid = any (array(
    select old.ctid
    from byrote_stats as old
    where old.minute < (select byrote_now()) - %(keep_stats)s::interval
    for update skip locked
  ))
  returning 1
)
select count(*) as deleted
from deleted;
