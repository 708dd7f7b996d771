-- Mark small contents that no artifact refers to as unused, and delete those that were unused for an hour, a page of the
-- primary key at a time.
-- A statement that is adding a reference to a content (artifact.sql) is either not visible here, and then commits
-- long before a mark of this statement is an hour old; or it has seen an older mark and removes it: then the row is
-- locked and skipped until the next walk, or its mark is read again once it is locked here, and it stays.
with clock as materialized (
  select byrote_now() as now
),
page as materialized (
  select
    blob.hash,
    not exists (select from byrote_artifacts as artifact where artifact.hash = blob.hash) as unused
  from byrote_artifact_blobs as blob
  where blob.hash > decode(%(after)s, 'hex')
  order by blob.hash
  limit %(limit)s
),
marked as (
  update byrote_artifact_blobs as blob
  set unused_since = case when blob.unused_since is null then (select now from clock) end
  where blob.ctid = any (array(
    select other.ctid
    from page
    join byrote_artifact_blobs as other on other.hash = any (array[page.hash])
    where (other.unused_since is null) = page.unused
    for no key update of other skip locked
  ))
),
deleted as (
  delete from byrote_artifact_blobs as blob
  where blob.ctid = any (array(
    select old.ctid
    from page
    join byrote_artifact_blobs as old on old.hash = any (array[page.hash])
    where page.unused
      and old.unused_since < (select now from clock) - interval '1 hour'
    for update of old skip locked
  ))
  returning 1
)
select
  (select count(*) from deleted) as removed,
  (select encode(hash, 'hex') from page order by hash desc limit 1) as reached;
