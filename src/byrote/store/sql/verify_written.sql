-- What attempts wrote under their leases besides their end, run by run.
select written.result_id::text, written.at, written.attempt, written.what, written.result_json, written.result_hash
from (
  select result_id, at, attempt, 'step ' || sequence || ' (' || name || ')' as what, result_json, result_hash
  from byrote_steps
  union all
  select result_id, at, attempt, 'artifact ' || name, null, null
  from byrote_artifacts
  union all
  select result_id, at, attempt, 'progress', null, null
  from byrote_progress
) as written
order by written.result_id, written.at;
