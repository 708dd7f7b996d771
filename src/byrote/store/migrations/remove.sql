-- Drops everything that the migrations have created, with all runs and their history.
drop view
  byrote_throughput_by_hour, byrote_wait_by_queue, byrote_errors_by_class, byrote_slowest_tasks, byrote_deployments,
  byrote_runs, byrote_event_log;
drop function
  byrote_event_hash(byrote_events), byrote_requeued(byrote_dead, timestamptz),
  byrote_failed(byrote_task_runs, timestamptz, jsonb, integer, integer, integer, jsonb);
drop table
  byrote_task_runs, byrote_archive, byrote_dead, byrote_events, byrote_chain, byrote_steps, byrote_signals, byrote_once,
  byrote_progress, byrote_outputs, byrote_watched, byrote_artifact_home, byrote_artifact_blobs, byrote_artifacts,
  byrote_provenance, byrote_memo, byrote_queues, byrote_workers, byrote_duties, byrote_periodic_tasks, byrote_unserved,
  byrote_tokens, byrote_audit, byrote_keys, byrote_stats, byrote_depths, byrote_retention, byrote_schema;
drop sequence byrote_events_seq, byrote_signals_seq;
drop function
  byrote_now(), byrote_home(), byrote_channel(text), byrote_micros(timestamptz),
  byrote_appended(jsonb, jsonb, integer), byrote_landed(uuid), byrote_stable_xid(),
  byrote_status_after(text, smallint, jsonb), byrote_live_change(text, jsonb), byrote_running_change(text, text),
  byrote_error_hash(jsonb), byrote_signalled(uuid, text), byrote_awaits(uuid, text),
  byrote_locked_state(uuid[]),
  byrote_noted(integer[], integer, integer), byrote_provenance_of(bytea),
  byrote_remember(uuid, jsonb, text, bytea), byrote_wake(text[], timestamptz), byrote_bucket(interval),
  byrote_make_partitions(integer), byrote_drop_partitions(text, text, timestamptz), byrote_prune_audit(interval);
