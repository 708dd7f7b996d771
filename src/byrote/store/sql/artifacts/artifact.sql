-- Store an artifact of an attempt. Only the holder of a lease that has not expired, by the database's clock, may write.
-- Returns a verdict and what is now stored under that name: `stored`, `same` (it was stored before, and that answer was
-- lost), `taken` (the name has other content), `full` (the run has as many artifacts as it may) or `lost` (the lease).
-- A content that is stored already is not locked, so a lock of another transaction on it delays nothing. Only if it is
-- marked as unused, the mark is removed first; `locked` means that another transaction prevented this, or that
-- prune_blobs.sql is deleting the content: the statement can be sent again in a moment.
with clock as materialized (
  select byrote_now() as now
),
lease as materialized (
  select run.result_id, run.attempts as attempt
  from byrote_task_runs as run
  where run.result_id = %(id)s::uuid
    and run.lease_token = %(token)s::uuid
    and run.status || '' = 'RUNNING'
    and run.leased_until > (select now from clock)
),
earlier as materialized (
  select artifact.hash, artifact.media_type, artifact.location, artifact.at
  from byrote_artifacts as artifact
  join lease using (result_id, attempt)
  where artifact.name = %(name)s
),
content as materialized (
  select blob.hash, blob.unused_since is not null as unused
  from byrote_artifact_blobs as blob
  where blob.hash = %(hash)s::bytea
    and %(data)s::bytea is not null
),
unlocked as materialized (
  select blob.hash
  from content
  join byrote_artifact_blobs as blob on blob.hash = content.hash
  where content.unused
  for no key update of blob skip locked
),
blocked as materialized (
  select content.hash
  from content
  where content.unused
    and not exists (select from unlocked)
),
accepted as materialized (
  select lease.result_id, lease.attempt
  from lease
  where not exists (select from earlier)
    and not exists (select from blocked)
    and (select count(*) from byrote_artifacts as other where other.result_id = lease.result_id) < %(count_max)s
),
stored_blob as (
  insert into byrote_artifact_blobs (hash, size, data)
  select %(hash)s::bytea, %(size)s, %(data)s::bytea
  from accepted
  where %(data)s::bytea is not null
    and not exists (select from content)
  on conflict (hash) do nothing
),
used_again as (
  update byrote_artifact_blobs as blob
  set unused_since = null
  from unlocked
  cross join accepted
  where blob.hash = unlocked.hash
),
stored as (
  insert into byrote_artifacts (result_id, at, size, attempt, name, hash, media_type, location)
  select
    result_id, (select now from clock), %(size)s, attempt, %(name)s, %(hash)s::bytea, %(media_type)s, %(location)s
  from accepted
  returning result_id, attempt, name, hash, size, media_type, location, at
),
-- The event has the hash of the content and the size of each artifact, by run, attempt and name.
logged as (
  insert into byrote_events (at, kind, runs, attempts, moves, data)
  select
    at, 'ArtifactStored', '{}', '{}', '{}',
    jsonb_build_object(
      result_id, jsonb_build_object(attempt || ' ' || name, jsonb_build_array(encode(hash, 'hex'), size))
    )
  from stored
)
select 'stored' as verdict, media_type, location, at
from stored
union all
select case when hash = %(hash)s::bytea then 'same' else 'taken' end, media_type, location, at
from earlier
union all
select
  case
    when not exists (select from lease) then 'lost'
    when exists (select from blocked) then 'locked'
    else 'full'
  end,
  '', '', now
from clock
where not exists (select from accepted)
  and not exists (select from earlier);
