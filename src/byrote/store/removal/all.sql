-- Removes everything that the migrations have made, with all runs and their history.
drop view
  byrote_throughput_by_hour, byrote_wait_by_queue, byrote_errors_by_class, byrote_slowest_tasks, byrote_deployments,
  byrote_runs, byrote_event_log;
drop function byrote_event_hash(byrote_events);
drop table
  byrote_task_runs, byrote_archive, byrote_dead, byrote_events, byrote_workers, byrote_queues, byrote_duties,
  byrote_outputs, byrote_provenance, byrote_steps, byrote_signals, byrote_once, byrote_artifact_home,
  byrote_artifact_blobs, byrote_artifacts, byrote_memo, byrote_watched, byrote_tokens, byrote_audit,
  byrote_keys, byrote_stats, byrote_chain, byrote_progress, byrote_depths, byrote_periodic_tasks, byrote_unserved, byrote_retention, byrote_schema;
drop sequence byrote_events_seq, byrote_signals_seq;
drop function
  byrote_now(), byrote_micros(timestamptz), byrote_make_partitions(integer),
  byrote_drop_partitions(text, text, timestamptz), byrote_noted(integer[], integer, integer),
  byrote_signalled(uuid, text), byrote_awaits(uuid, text), byrote_remember(uuid, bytea, interval, text, bytea),
  byrote_prune_audit(interval), byrote_bucket(interval), byrote_status_after(text, smallint, jsonb),
  byrote_landed(uuid), byrote_settled(), byrote_live_change(text, jsonb), byrote_running_change(text, text),
  byrote_provenance_of(bytea), byrote_error_hash(jsonb);
