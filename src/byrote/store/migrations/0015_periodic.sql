-- Periodic tasks: what is to run, by which timing, and when next.

-- One small row each. What is to run is stored like a run's, byte for byte.
create table byrote_periodic_tasks (
  next_at timestamptz,
  last_at timestamptz,
  paused_at timestamptz,
  created_at timestamptz not null,
  changed_at timestamptz not null,
  timeout_ms bigint,
  jitter_us bigint not null default 0 check (jitter_us >= 0),
  runs bigint not null default 0,
  skipped bigint not null default 0,
  last_run uuid,
  task_version integer not null,
  max_attempts integer not null,
  priority smallint not null check (priority between -100 and 100),
  name text collate "C" primary key,
  timing text not null,
  zone text not null,
  catch_up text not null check (catch_up in ('one', 'all', 'none')),
  queue_name text collate "C" not null,
  task_path text collate "C" not null,
  spec_hash bytea not null,
  spec_json text not null,
  retry_json text,
  labels jsonb,
  unique_key text collate "C",
  -- What a worker's app last said of it; a change by hand stays until that changes. Null: no app defines it.
  code_hash text,
  -- Why it was paused, if nobody wished so.
  fault text
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

create index byrote_periodic_for_beat on byrote_periodic_tasks (next_at) where paused_at is null and next_at is not null;

insert into byrote_duties (duty, next_at) values ('beat', '-infinity');
