-- Delete replies to keyed requests and audit entries past their retention.
-- Rows that another transaction has locked are left for the next time.
with keys as (
  delete from byrote_keys as reply
  where reply.ctid = any (array(
    select old.ctid
    from byrote_keys as old
    where old.at < (select byrote_now()) - %(keep_keys)s::interval
    for update skip locked
  ))
  returning 1
)
select
  (select count(*) from keys) as keys,
  byrote_prune_audit(%(keep_audit)s) as audits;
