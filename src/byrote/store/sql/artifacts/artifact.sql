-- Store an artifact of an attempt. Only the holder of a lease that has not expired, by the database's clock, may write.
-- Returns a verdict and what is now stored under that name: `stored`, `same` (it was stored before, and that answer was
-- lost), `taken` (the name has other content), `full` (the run has as many artifacts as it may) or `lost` (the lease).
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
accepted as materialized (
  select lease.result_id, lease.attempt
  from lease
  where not exists (select from earlier)
    and (select count(*) from byrote_artifacts as other where other.result_id = lease.result_id) < %(count_max)s
),
stored_blob as (
  insert into byrote_artifact_blobs (hash, size, touched_at, data)
  select %(hash)s::bytea, %(size)s, (select now from clock), %(data)s::bytea
  from accepted
  where %(data)s::bytea is not null
  -- The update saves a blob that is being pruned at this moment: see prune_blobs.sql.
  on conflict (hash) do update set touched_at = excluded.touched_at
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
select case when exists (select from lease) then 'full' else 'lost' end, '', '', now
from clock
where not exists (select from accepted)
  and not exists (select from earlier);
