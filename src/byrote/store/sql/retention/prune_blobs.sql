-- Delete small contents that no artifact refers to, a page of the primary key at a time.
-- A blob that gets a reference at this moment was touched by the same statement (artifact.sql): the delete waits for its
-- row lock, reads touched_at again, and leaves it.
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
  using page
  where blob.hash = page.hash
    and blob.touched_at < (select now from clock) - interval '1 hour'
    and not exists (select from byrote_artifacts as artifact where artifact.hash = blob.hash)
  returning 1
)
select
  (select count(*) from deleted) as removed,
  (select encode(hash, 'hex') from page order by hash desc limit 1) as reached;
