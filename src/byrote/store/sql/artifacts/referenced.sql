-- Which of these hashes some artifact refers to. Served by byrote_artifacts_by_hash.
select encode(wanted.hash, 'hex') as hash
from unnest(%(hashes)s::bytea[]) as wanted (hash)
where exists (select from byrote_artifacts as artifact where artifact.hash = wanted.hash);
