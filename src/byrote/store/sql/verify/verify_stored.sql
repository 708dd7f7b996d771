-- Stored texts with a hash, besides runs and steps: signals, remembered results, environments; and artifacts in this
-- database whose content is missing or different. `agrees`: it equals what other rows made of it, as far as these still
-- exist.
select stored.kind, stored.name, stored.run::text, stored.text, stored.hash, stored.agrees
from (
  select
    'signal' as kind, signal.name, signal.result_id as run, signal.payload_json as text, signal.payload_hash as hash,
    step.sequence is null or step.result_hash is not distinct from signal.payload_hash as agrees
  from byrote_signals as signal
  left join byrote_steps as step on step.result_id = signal.result_id and step.sequence = signal.taken_by
  union all
  select
    'memo', memo.task_path, memo.result_id, memo.return_json, memo.result_hash,
    run.result_id is null
    or (run.result_hash, run.spec_hash, run.task_path) is not distinct from (memo.result_hash, memo.spec_hash, memo.task_path)
  from byrote_memo as memo
  left join byrote_runs as run on run.result_id = memo.result_id
  union all
  select 'environment', provenance_id::text, null, doc::text, hash, true
  from byrote_provenance
  union all
  select 'artifact', artifact.name, artifact.result_id, null, null, false
  from byrote_artifacts as artifact
  left join byrote_artifact_blobs as blob on blob.hash = artifact.hash
  where artifact.location = 'postgres'
    and artifact.hash is distinct from sha256(blob.data)
) as stored;
