-- Delete replies to keyed requests, counts and audit entries past their retention.
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
),
stats as (
  delete from byrote_stats as stats
  where stats.ctid = any (array(
    select old.ctid
    from byrote_stats as old
    where old.minute < (select byrote_now()) - %(keep_stats)s::interval
    for update skip locked
  ))
  returning 1
)
select
  (select count(*) from keys) as keys,
  (select count(*) from stats) as stats,
  byrote_prune_audit(%(keep_audit)s) as audits;
