-- Which of these hashes an artifact refers to. Served by byrote_artifacts_by_hash.
select encode(candidate.hash, 'hex') as hash
from unnest(%(hashes)s::bytea[]) as candidate (hash)
where exists (select from byrote_artifacts as artifact where artifact.hash = candidate.hash);
