-- Delete one batch of remembered results past their retention. Served by byrote_memo_for_prune.
with deleted as (
  delete from byrote_memo as memo
  where memo.ctid = any (array(
    select old.ctid
    from byrote_memo as old
    where old.kept_until <= (select byrote_now())
    order by old.kept_until
    limit %(limit)s
    for update skip locked
  ))
  returning 1
)
select count(*) as removed
from deleted;
