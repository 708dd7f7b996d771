-- Delete small contents that no artifact refers to, a page of the primary key at a time.
-- A blob that gets a reference at this moment was touched by the same statement (artifact.sql): its row is locked, and
-- skipped until the next walk, or its touched_at is read again once it is locked here, and it stays.
with clock as materialized (
  select byrote_now() as now
),
page as materialized (
  select blob.hash
  from byrote_artifact_blobs as blob
  where blob.hash > decode(%(after)s, 'hex')
  order by blob.hash
  limit %(limit)s
),
deleted as (
  delete from byrote_artifact_blobs as blob
  where blob.ctid = any (array(
    select unused.ctid
    from byrote_artifact_blobs as unused
    where unused.hash = any (array(select hash from page))
      and unused.touched_at < (select now from clock) - interval '1 hour'
      and not exists (select from byrote_artifacts as artifact where artifact.hash = unused.hash)
    for update of unused skip locked
  ))
  returning 1
)
select
  (select count(*) from deleted) as removed,
  (select encode(hash, 'hex') from page order by hash desc limit 1) as reached;
