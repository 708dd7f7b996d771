-- Rows of runs in other tables, run by run: steps, artifacts and progress, which attempts write under their leases, and
-- signals, which have no attempt. `entry` and `facts` are as in the log (step.sql, artifact.sql).
select
  written.result_id::text, written.at, written.attempt, written.kind, written.entry, written.what, written.facts::text,
  written.result_json, written.result_hash
from (
  select
    result_id, at, attempt, 'StepStored' as kind, sequence::text as entry, 'step ' || sequence || ' (' || name || ')' as what,
    jsonb_build_array(
      kind, name, encode(result_hash, 'hex'), byrote_micros(wake_at), place, encode(args_hash, 'hex')
    ) as facts,
    result_json, result_hash
  from byrote_steps
  union all
  select
    result_id, at, attempt, 'ArtifactStored', attempt || ' ' || name, 'artifact ' || name,
    jsonb_build_array(encode(hash, 'hex'), size), null, null
  from byrote_artifacts
  union all
  select result_id, at, attempt, 'Progressed', '', 'progress', null, null, null
  from byrote_progress
  union all
  select
    result_id, at, null, 'Signalled', encode(payload_hash, 'hex') || ' ' || name, 'signal ' || name, null, null, null
  from byrote_signals
) as written
order by written.result_id, written.at;
