-- Database roles with least privilege. Run it as the owner of the tables, after every `byrote migrate`:
--   byrote roles --sql | psql "$DATABASE_URL"
-- The roles cannot log in; grant them to users that can:
--   create user shop password '…' in role byrote_enqueue;
do $$
declare
  name text;
begin
  foreach name in array array['byrote_enqueue', 'byrote_worker', 'byrote_read', 'byrote_service', 'byrote_owner'] loop
    if not exists (select 1 from pg_roles where rolname = name) then
      begin
        execute format('create role %I nologin', name);
      exception when duplicate_object or unique_violation then
        null;  -- Another session, perhaps of another database, created it at the same moment.
      end;
    end if;
  end loop;
  execute format(
    'grant usage on schema %I to byrote_enqueue, byrote_worker, byrote_read, byrote_service, byrote_owner', byrote_home()
  );
  execute format('grant create on schema %I to byrote_owner', byrote_home());
  -- PostgreSQL 14 lets every user create functions in the schema public, which others would then call unknowingly.
  execute format('revoke create on schema %I from public', byrote_home());
end
$$;

-- Partitions belong to the owner. Workers create and drop them only through functions, which run with the owner's rights,
-- resolve no name of their caller's, and drop nothing that byrote_retention protects (0001_schema.sql).
revoke all on function byrote_make_partitions(integer) from public;
revoke all on function byrote_drop_partitions(text, text, timestamptz) from public;
revoke all on function byrote_prune_audit(interval) from public;

-- byrote_enqueue: may add runs and see no arguments or results, so it cannot add runs of tasks with a memo. It sees unique
-- keys, to find the run that holds one. It may set only the columns that an enqueue sets; for these byrote_run_is_sound
-- allows only READY and WAITING runs: no results, no leases. It may write events of any kind; `byrote verify` finds
-- those that do not agree with their runs.
revoke insert on byrote_task_runs, byrote_events from byrote_enqueue;
grant
  insert (
    result_id, queue_name, task_path, task_version, spec_json, spec_hash, priority, run_after, rank, status, wait_reason,
    enqueued_at, max_attempts, timeout_ms, retry_json, labels, traceparent, replay_of, unique_key
  ),
  select (result_id, queue_name, status, enqueued_at, run_after, task_path, unique_key)
  on byrote_task_runs to byrote_enqueue;
grant insert (schema, at, kind, runs, attempts, moves, digests, data) on byrote_events to byrote_enqueue;
grant usage on sequence byrote_events_seq to byrote_enqueue;
grant select on byrote_queues, byrote_schema to byrote_enqueue;
grant select (worker_id, idle, queues, seen_at, tasks, aliases, policies) on byrote_workers to byrote_enqueue;
grant select (result_id) on byrote_runs to byrote_enqueue;

-- byrote_worker: claims, finishes, and does the housekeeping. It adds links to the chain, and can neither change nor
-- remove one: locking the last link needs the right to update one of its columns, which is not part of the hash.
revoke update, delete on byrote_chain from byrote_worker;
revoke update on byrote_once, byrote_artifacts from byrote_worker;
grant select, insert, update, delete
  on byrote_task_runs, byrote_dead, byrote_workers, byrote_steps, byrote_artifact_blobs, byrote_memo, byrote_watched,
    byrote_progress, byrote_periodic_tasks, byrote_unserved, byrote_stats, byrote_depths
  to byrote_worker;
grant select, insert, delete on byrote_once, byrote_artifacts to byrote_worker;
-- Locking a row before its deletion needs the right to update one of its columns.
grant update (at) on byrote_once, byrote_artifacts to byrote_worker;
grant select, insert, update (linked_at) on byrote_chain to byrote_worker;
grant select, insert on byrote_archive, byrote_events, byrote_outputs, byrote_provenance, byrote_queues to byrote_worker;
grant select, insert, update, delete on byrote_signals to byrote_worker;
grant select, update on byrote_duties to byrote_worker;
grant select on byrote_runs, byrote_event_log, byrote_artifact_home, byrote_retention, byrote_schema to byrote_worker;
grant usage, select on sequence byrote_events_seq, byrote_signals_seq, byrote_provenance_provenance_id_seq to byrote_worker;
grant execute on function byrote_make_partitions(integer), byrote_drop_partitions(text, text, timestamptz) to byrote_worker;

-- byrote_service: the rights of a worker, and those for requests of people and producers; adds to the audit and cannot
-- delete from it.
grant byrote_worker to byrote_service;
grant insert on byrote_audit to byrote_service;
grant update on byrote_queues to byrote_service;
grant select, update (used_at) on byrote_tokens to byrote_service;
grant select, insert, delete, update (at) on byrote_keys to byrote_service;
grant execute on function byrote_prune_audit(interval) to byrote_service;

-- byrote_read: everything except arguments, results, the texts of errors and progress, the output of attempts, and tokens.
grant select (
  result_id, workflow_id, replay_of, rank, run_after, enqueued_at, started_at, last_attempted_at, finished_at, leased_until,
  cancel_requested_at, timeout_ms, task_version, attempts, charged, losses, max_attempts, moves, priority, status,
  wait_reason, queue_name, task_path, leased_by, spec_hash, result_hash, worker_ids, labels, traceparent, as_of, provenance, shadow,
  memo_of, unique_key, usage
) on byrote_runs, byrote_task_runs, byrote_archive, byrote_dead to byrote_read;
grant select on byrote_workers, byrote_queues, byrote_stats, byrote_depths, byrote_duties, byrote_provenance, byrote_retention,
  byrote_schema, byrote_unserved to byrote_read;
grant select (seq, ordinal, xid, at, kind, result_id, attempt, move, worker, leased_until, data, schema)
  on byrote_event_log to byrote_read;
grant select (seq, xid, at, kind, runs, attempts, moves, worker, leased_until, data, schema) on byrote_events to byrote_read;
grant select (result_id, at, wake_at, sequence, attempt, open, kind, name, result_hash) on byrote_steps to byrote_read;
grant select on byrote_artifacts to byrote_read;
grant select on sequence byrote_events_seq to byrote_read;
grant select (
  name, timing, zone, catch_up, jitter_us, next_at, last_at, last_run, runs, skipped, paused_at, fault, created_at, changed_at,
  queue_name, task_path, task_version, priority, max_attempts, timeout_ms, spec_hash, labels, unique_key, code_hash
) on byrote_periodic_tasks to byrote_read;
grant select (result_id, attempt, percent, done, total, at, began_at, began_percent) on byrote_progress to byrote_read;

-- byrote_owner: migrates. Make it the owner of the tables, or grant it to the login that runs `byrote migrate`.
grant byrote_service to byrote_owner;
grant select, insert, update, delete on byrote_tokens, byrote_audit to byrote_owner;
grant delete on byrote_archive, byrote_outputs to byrote_owner;
grant update (finished_at) on byrote_archive to byrote_owner;
grant update (at) on byrote_outputs to byrote_owner;
