-- Delete replies to keyed requests, counts and audit entries past their retention.
with keys as (
  delete from byrote_keys
  where at < (select byrote_now()) - %(keep_keys)s::interval
  returning 1
),
stats as (
  delete from byrote_stats
  where minute < (select byrote_now()) - %(keep_stats)s::interval
  returning 1
)
select
  (select count(*) from keys) as keys,
  (select count(*) from stats) as stats,
  byrote_prune_audit(%(keep_audit)s) as audits;
