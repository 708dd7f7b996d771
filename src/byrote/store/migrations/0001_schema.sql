-- The schema of Byrote: queue, results, history, and everything else that workers and the service store.
--
-- Every name begins with byrote_. Everything is created in the first schema of the search path. Functions then name that
-- schema, so that they work with any search path of their caller; it must not be renamed. One table is not in this file:
-- byrote_schema, which records the applied migrations, is created by store/migrate.py before the first of them.
-- remove.sql, in the same folder, drops everything that is created here. `byrote roles --sql` grants rights.
--
-- Tables
--
--   Runs
--     byrote_task_runs       The queue, and runs that finished lately. Every claim and every finish writes here.
--     byrote_archive         Finished runs, one partition per day (UTC) of finished_at.
--     byrote_dead            FAILED runs, moved here by the statement that fails them.
--   History
--     byrote_events          Events, one row per statement that moved runs. One partition per day of `at`.
--     byrote_chain           Hashes over stretches of byrote_events. Each covers the one before it.
--   State of runs
--     byrote_steps           Results of steps, sleeps and waits of a run, by their sequence in it.
--     byrote_signals         Signals sent to a run.
--     byrote_once            Keys of effects that a run must have only once.
--     byrote_progress        The latest progress report of a run.
--     byrote_outputs         The end of stdout and stderr of each attempt. One partition per day of `at`.
--     byrote_watched         Runs whose output a client follows, and the end of that output so far.
--   Artifacts, provenance, memo
--     byrote_artifact_home   One row: the id that separates this database's files in a shared directory or bucket.
--     byrote_artifact_blobs  Contents of artifacts up to 1 MiB, by SHA-256.
--     byrote_artifacts       Which attempt stored which content under which name.
--     byrote_provenance      Descriptions of the environments that executed attempts, by SHA-256.
--     byrote_memo            Results that answer later runs of the same spec by the same code.
--   Work
--     byrote_queues          Settings of queues. A queue without a row has the defaults.
--     byrote_workers         Workers and services, with their last heartbeat.
--     byrote_duties          Housekeeping, when each duty is due next, and its cursor. Filled here.
--     byrote_periodic_tasks  Schedules: what runs, by which timing, and when next.
--     byrote_unserved        Tasks with ready runs that no live worker of their queue knows.
--   Service
--     byrote_tokens          Access tokens, by SHA-256.
--     byrote_audit           Requests that changed something.
--     byrote_keys            Responses to requests with an Idempotency-Key.
--     byrote_stats           Counts and histograms per minute, derived from byrote_events.
--     byrote_depths          Numbers of unfinished and running runs per queue and task, derived from byrote_events.
--   Retention
--     byrote_retention       The shortest time for which tables keep their rows. Filled here; only the owner may change it.
--
-- Views
--
--   byrote_runs              Runs in all three tables.
--   byrote_event_log         byrote_events with one row per run and event.
--   byrote_throughput_by_hour, byrote_wait_by_queue, byrote_errors_by_class, byrote_slowest_tasks, byrote_deployments
--                            Reports for people; documented in docs/reference/views.md.
--
-- Sequences: byrote_events_seq, byrote_signals_seq.
--
-- Functions
--
--   byrote_now               The clock of every statement.
--   byrote_home              The schema of all of this.
--   byrote_channel           The name of a channel for notifications, different for each schema.
--   byrote_micros            A moment as microseconds since 1970.
--   byrote_appended          A list of errors or measurements with one more entry.
--   byrote_failed            A run's row as byrote_dead stores it.
--   byrote_requeued          A dead run's row as byrote_task_runs stores it again.
--   byrote_landed            Whether a run was accepted, in whichever table it is now.
--   byrote_stable_xid        The transaction id below which byrote_events can no longer change.
--   byrote_status_after      The status that an event leaves its run in.
--   byrote_live_change       By how much an event changes the number of unfinished runs.
--   byrote_running_change    By how much an event changes the number of running runs.
--   byrote_event_hash        The hash of one event for byrote_chain.
--   byrote_error_hash        The hash of one error of a run.
--   byrote_signalled         Whether a run has an unread signal of this name.
--   byrote_awaits            Whether a run waits for a signal of this name.
--   byrote_locked_state      The runs whose state another transaction has locked.
--   byrote_noted             The provenance of a run's attempts, with one more.
--   byrote_provenance_of     The id of an environment, by its hash.
--   byrote_remember          Stores a run's result in byrote_memo.
--   byrote_wake              Notifies idle workers of ready runs.
--   byrote_bucket            The histogram bucket of a duration.
--   byrote_make_partitions   Creates the daily partitions of the coming days.        With the owner's rights.
--   byrote_drop_partitions   Drops the daily partitions that are too old.            With the owner's rights.
--   byrote_prune_audit       Deletes entries of byrote_audit that are too old.       With the owner's rights.
--
-- Indexes, besides primary keys
--
--   byrote_task_runs, each partial and for one kind of statement:
--     byrote_ready_for_claim      Claims: READY runs of a queue by rank.
--     byrote_waiting_for_promote  Promotion: WAITING runs by run_after.
--     byrote_leased_for_sweep     Sweeps: RUNNING runs by the end of their lease.
--     byrote_unique_for_enqueue   Unique keys: unfinished runs that have one.
--     byrote_replays              From a run to its replays; so do byrote_archived_replays and byrote_dead_replays.
--   byrote_archive: byrote_archived_by_id, byrote_archived_by_hash (of the spec).
--   byrote_dead: byrote_dead_by_queue, byrote_dead_by_task, byrote_dead_by_hash (of the spec).
--   byrote_events: byrote_events_by_xid for readers that follow the log, byrote_events_by_time for the history of a run.
--   By the key in their name: byrote_outputs_by_run, byrote_artifacts_by_hash, byrote_audit_by_time.
--   Reading signals: byrote_signals_for_wait. Due schedules: byrote_periodic_for_beat.
--   Deleting old rows: byrote_dead_for_prune, byrote_memo_for_prune, byrote_keys_for_prune, byrote_steps_for_forget,
--   byrote_signals_for_forget, byrote_once_for_forget, byrote_progress_for_forget.
--
-- Promises
--
--   A run is in exactly one of byrote_task_runs, byrote_archive and byrote_dead.
--   A run's status agrees with its lease, its wait reason and its end: byrote_run_is_sound.
--   While a run with a unique key is unfinished, its task has no other run with that key: byrote_unique_for_enqueue.
--   Specs and results are stored byte for byte as they were sent, with their SHA-256.
--   Every move of a run is an event in the same transaction, except where a queue's `events` is 'few'.
--   No foreign keys: inserts into the hot table do not pay for them. Rows of deleted runs are deleted by duties.
--   Functions resolve our names in our schema only. Those with the owner's rights resolve no name of their caller's, and
--   read the server's clock.
--
-- The kinds of events ('Claimed', 'Crashed', 'Lost', …) occur only in byrote_status_after, byrote_live_change and
-- byrote_running_change, which stand together in the section "Events".

-- ---------------------------------------------------------------------------------------------------------------------
-- Clock

-- The clock of every statement. No setting of a session can move it; a test that moves time replaces the function, for
-- which it must be the owner (testing/clock.sql). Volatile, so that the planner inlines it; statements wrap it in
-- (select …) to evaluate it once.
create function byrote_now() returns timestamptz
language sql volatile parallel safe
as $$ select clock_timestamp() $$;

-- Stable, as date_part is for timestamptz: an immutable function could not be inlined.
create function byrote_micros(moment timestamptz) returns bigint
language sql stable parallel safe
as $$ select (date_part('epoch', moment) * 1000000)::bigint $$;

-- ---------------------------------------------------------------------------------------------------------------------
-- Runs

create table byrote_task_runs (
  -- Fixed width first: no padding between columns, and offsets that the executor can cache.
  result_id uuid primary key,
  workflow_id uuid,
  replay_of uuid,
  lease_token uuid,
  -- epoch_us(run_after) - priority * ageing_us: claims take the lowest first.
  rank bigint not null,
  run_after timestamptz not null,
  enqueued_at timestamptz not null,
  started_at timestamptz,
  last_attempted_at timestamptz,
  finished_at timestamptz,
  leased_until timestamptz,
  cancel_requested_at timestamptz,
  timeout_ms bigint,
  task_version integer not null,
  -- Claims; failures that count against max_attempts; workers that vanished; events so far.
  attempts integer not null default 0,
  charged integer not null default 0,
  losses integer not null default 0,
  max_attempts integer not null,
  moves integer not null default 1,
  priority smallint not null default 0,
  status text collate "C" not null,
  wait_reason text collate "C",
  queue_name text collate "C" not null,
  task_path text collate "C" not null,
  leased_by text collate "C",
  spec_hash bytea not null,
  result_hash bytea,
  worker_ids text[] not null default '{}',
  spec_json text not null,
  return_json text,
  errors_json jsonb,
  retry_json text,
  labels jsonb,
  traceparent text,
  -- The moment that ctx.now() returns; null is enqueued_at. A replay has the moment of the run it repeats.
  as_of timestamptz,
  -- One entry per attempt, null for attempts without a known environment.
  provenance integer[],
  -- One object per attempt, of tasks that ask for measurement.
  usage jsonb,
  -- An execution that only checks whether a spec still has the same result; null is false. Shadow runs are left out of
  -- lists, counts and notifications, and are deleted after a day.
  shadow boolean,
  -- The run whose result answered this one when it was enqueued. Such a run is SUCCESSFUL from the start and only ever
  -- moves to the archive, so the statements that kill or revive runs ignore the column.
  memo_of uuid,
  -- Part of the delivery, not of the computation: spec_hash does not cover it.
  unique_key text collate "C",
  -- One constraint, not seven, and a short one: every statement that writes here parses its text again.
  constraint byrote_run_is_sound check (
    case
      when leased_until is not null then status = 'RUNNING' and lease_token is not null
      when wait_reason is not null then status = 'WAITING'
      when finished_at is not null then status in ('SUCCESSFUL', 'FAILED', 'CANCELLED')
      else status = 'READY'
    end
    and num_nonnulls(leased_until, wait_reason, finished_at) < 2
    and priority between -100 and 100
    and octet_length(spec_hash) = 32
  )
) with (
  -- Half of each page stays free: the two updates of a run stay on its page, which halves the WAL.
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 10000,
  autovacuum_vacuum_insert_scale_factor = 0.1,
  autovacuum_analyze_scale_factor = 0.05,
  autovacuum_vacuum_cost_delay = 0
);

-- Hashes stay in the row, uncompressed. (`create table` accepts `storage` only from PostgreSQL 16 on.)
alter table byrote_task_runs alter column spec_hash set storage plain;
alter table byrote_task_runs alter column result_hash set storage plain;

create index byrote_ready_for_claim on byrote_task_runs (queue_name, rank) where status = 'READY';
create index byrote_waiting_for_promote on byrote_task_runs (run_after) where status = 'WAITING';
create index byrote_leased_for_sweep on byrote_task_runs (leased_until) where status = 'RUNNING';
-- Only unfinished runs with a key: a key is free again when its run ends, however it ends. The columns never change, and
-- `status` already decides about other indexes, so no update becomes more expensive.
create unique index byrote_unique_for_enqueue on byrote_task_runs (task_path, unique_key)
where unique_key is not null and status in ('WAITING', 'READY', 'RUNNING');
create index byrote_replays on byrote_task_runs (replay_of) where replay_of is not null;

create table byrote_archive (
  like byrote_task_runs including defaults including constraints including storage
) partition by range (finished_at);

create index byrote_archived_by_id on byrote_archive (result_id);
create index byrote_archived_by_hash on byrote_archive (spec_hash);
create index byrote_archived_replays on byrote_archive (replay_of) where replay_of is not null;
create table byrote_archive_rest partition of byrote_archive default;

create table byrote_dead (
  like byrote_task_runs including defaults including constraints including storage,
  primary key (result_id)
);
create index byrote_dead_for_prune on byrote_dead (finished_at);
create index byrote_dead_by_queue on byrote_dead (queue_name, finished_at);
create index byrote_dead_by_task on byrote_dead (task_path, finished_at);
create index byrote_dead_by_hash on byrote_dead (spec_hash);
create index byrote_dead_replays on byrote_dead (replay_of) where replay_of is not null;

create view byrote_runs as
select * from byrote_task_runs
union all
select * from byrote_archive
union all
select * from byrote_dead;

-- At most fifty entries: then the one at `index` makes room, 0 for the oldest, 1 to keep the first. The planner inlines it.
create function byrote_appended(kept jsonb, entry jsonb, index integer) returns jsonb
language sql immutable parallel safe
as $$
  select case
    when entry is null then kept
    when jsonb_array_length(kept) >= 50 then kept - index || entry
    else coalesce(kept, '[]') || entry
  end
$$;

-- Rows that move between the tables are changed by functions that name only the columns that change: the tables have the
-- same columns in the same order, and a column that is added to all of them moves along without a change here.

-- A lost lease has no verdict: without its token, a late finish does not pass for settled (finished_leases.sql).
create function byrote_failed(
  run byrote_task_runs, at timestamptz, error jsonb, charged integer default 0, lost integer default 0,
  environment integer default null, used jsonb default null
) returns byrote_task_runs
language plpgsql immutable parallel safe
as $$
begin
  run.status := 'FAILED';
  run.finished_at := at;
  run.leased_until := null;
  run.charged := run.charged + charged;
  run.losses := run.losses + lost;
  run.moves := run.moves + 1;
  run.errors_json := byrote_home.byrote_appended(run.errors_json, error, 1);
  run.provenance := byrote_home.byrote_noted(run.provenance, run.attempts, environment);
  run.usage := byrote_home.byrote_appended(run.usage, used, 0);
  if lost > 0 then
    run.lease_token := null;
  end if;
  return run;
end
$$;

-- With a fresh budget, and without the unique key, which another run may hold by now.
create function byrote_requeued(run byrote_dead, at timestamptz) returns byrote_dead
language plpgsql stable parallel safe
as $$
begin
  run.status := 'READY';
  run.rank := run.rank + byrote_home.byrote_micros(at) - byrote_home.byrote_micros(run.run_after);
  run.run_after := at;
  run.charged := 0;
  run.losses := 0;
  run.moves := run.moves + 1;
  run.finished_at := null;
  run.cancel_requested_at := null;
  run.lease_token := null;
  run.leased_by := null;
  run.unique_key := null;
  return run;
end
$$;

-- A function, so that a statement that seldom needs it is not planned each time over all partitions of the archive.
create function byrote_landed(run uuid) returns boolean
language plpgsql stable
as $$
begin
  return exists (select 1 from byrote_home.byrote_runs where result_id = run);
end
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- Events

-- One row per statement that moved runs, not one per run: an event about 300 runs costs hardly more than about one.
--
-- A transaction that began earlier may commit later, so a lower seq can become visible after a higher one. Readers that
-- follow the log therefore order by (xid, seq), and stop at byrote_stable_xid().
create sequence byrote_events_seq;

create table byrote_events (
  seq bigint not null default nextval('byrote_events_seq'),
  xid xid8 not null default pg_current_xact_id(),
  at timestamptz not null,
  leased_until timestamptz,
  lease_token uuid,
  schema smallint not null default 1,
  kind text collate "C" not null,
  worker text collate "C",
  -- `attempts`, `moves` and `digests` have one entry for each of `runs`. `data` has the ids of runs as keys.
  -- StepStored and ArtifactStored move no run, so their `runs` are empty and readers of moves do not meet them; their
  -- `data` has the run, in it the step or the artifact, and its facts.
  runs uuid[] not null,
  attempts integer[] not null,
  moves integer[] not null,
  data jsonb,
  -- Hashes of what runs store, so that the chain covers it: of Enqueued the spec's, of Succeeded and Remembered the
  -- result's, of Signalled the payload's, of failed attempts the error's (byrote_error_hash); null where there is none.
  digests bytea[]
) partition by range (at);

alter table byrote_events alter column runs set storage external;
alter table byrote_events alter column attempts set storage external;
alter table byrote_events alter column moves set storage external;
alter table byrote_events alter column digests set storage external;

create index byrote_events_by_xid on byrote_events (xid, seq);
create index byrote_events_by_time on byrote_events using brin (at) with (pages_per_range = 16);
create table byrote_events_rest partition of byrote_events default;

create view byrote_event_log as
select
  event.seq,
  entry.ordinal,
  event.xid,
  event.at,
  event.kind,
  entry.result_id,
  entry.attempt,
  entry.move,
  event.worker,
  event.lease_token,
  event.leased_until,
  event.data -> (entry.result_id::text) as data,
  event.schema,
  entry.digest
from byrote_events as event
cross join lateral unnest(event.runs, event.attempts, event.moves, event.digests)
  with ordinality as entry (result_id, attempt, move, digest, ordinal);

-- Every transaction below the returned one has ended, or belongs to another database and cannot write here. A snapshot
-- lists the transactions of the whole server; one is ignored only if its lock belongs to a session of another database.
-- On a standby a snapshot does not list them, so there the oldest one counts.
create function byrote_stable_xid() returns xid8
language sql stable
as $$
  with snapshot as materialized (
    select pg_current_snapshot() as seen
  ),
  strangers as materialized (
    select locks.transactionid
    from pg_locks as locks
    join pg_stat_activity as session on session.pid = locks.pid
    where locks.locktype = 'transactionid'
      and locks.mode = 'ExclusiveLock'
      and locks.granted
      and session.datid <> (select oid from pg_database where datname = current_database())
  )
  select case
    when pg_is_in_recovery() then pg_snapshot_xmin(seen)
    else least(
      pg_snapshot_xmax(seen),
      pg_current_xact_id_if_assigned(),
      (
        select running.xid
        from pg_snapshot_xip(seen) as running (xid)
        where not exists (select from strangers where strangers.transactionid = running.xid::xid)
        order by running.xid
        limit 1
      )
    )
  end
  from snapshot
$$;

-- The rules of core/log/fold.py, for statements that need the status of many runs at once.
create function byrote_status_after(kind text, schema smallint, data jsonb) returns text
language sql immutable parallel safe
as $$
  select case
    when kind = 'Enqueued' and schema >= 2 then case when data ? 'run_after' then 'WAITING' else 'READY' end
    when kind in ('Promoted', 'Released', 'Crashed', 'Lost', 'Revived') then 'READY'
    when kind in ('Claimed', 'Renewed', 'CancelRequested') then 'RUNNING'
    when kind in ('Succeeded', 'Remembered') then 'SUCCESSFUL'
    when kind = 'Failed' then 'FAILED'
    when kind = 'Cancelled' then 'CANCELLED'
    when kind in ('Retried', 'Snoozed') and schema = 1 then
      case
        when coalesce((data ->> 'delay_us')::bigint, 0) <= 0 then 'READY'
        when kind = 'Retried' then 'WAITING'
      end
    else data ->> 'status'
  end
$$;

-- A revived run was either dead, which its event states, or waiting, and then it was live already.
create function byrote_live_change(kind text, data jsonb) returns integer
language sql immutable parallel safe
as $$
  select case
    when kind = 'Enqueued' or (kind = 'Revived' and data ->> 'was' = 'FAILED') then 1
    when kind in ('Succeeded', 'Failed', 'Cancelled', 'Remembered') then -1
    else 0
  end
$$;

-- A run that is cancelled before its claim, or fails because no worker knows its task, was not running: its event has no
-- worker.
create function byrote_running_change(kind text, worker text) returns integer
language sql immutable parallel safe
as $$
  select case
    when kind = 'Claimed' then 1
    when kind in ('Succeeded', 'Retried', 'Snoozed', 'Released', 'Crashed', 'Lost') then -1
    when kind in ('Cancelled', 'Failed') and worker is not null then -1
    else 0
  end
$$;

-- Stable, as the text of a jsonb is for the planner: an immutable function would not be inlined, and a call costs 1 µs.
create function byrote_error_hash(error jsonb) returns bytea
language sql stable parallel safe
as $$ select sha256(convert_to(error::text, 'UTF8')) $$;

-- Each link hashes the link before it and the events up to (xid, seq), so that a change, removal or insertion among them
-- is detected. A duty adds links after the fact, so that no statement waits for another's hash. The duty's cursor is the
-- number of the last link, so that links removed at the end are missed.
create table byrote_chain (
  link bigint primary key,
  xid xid8 not null,
  seq bigint not null,
  events integer not null,
  first_at timestamptz not null,
  linked_at timestamptz not null,
  hash bytea not null,
  constraint byrote_link_is_sound check (octet_length(hash) = 32 and events > 0)
);

create function byrote_event_hash(event byrote_events) returns bytea
language sql stable parallel safe
return sha256(convert_to(
  (
    jsonb_build_array(
      event.seq, event.xid::text, byrote_micros(event.at), byrote_micros(event.leased_until), event.lease_token,
      event.schema, event.kind, event.worker, event.runs, event.attempts, event.moves, event.data
    )
    || case
      when event.digests is null then '[]'::jsonb
      else jsonb_build_array(encode(array_send(event.digests), 'hex'))
    end
  )::text,
  'UTF8'
));

-- ---------------------------------------------------------------------------------------------------------------------
-- State of runs: steps, signals, effects, progress, output
-- Rows of runs that are gone are deleted by delete_orphans.sql and prune.sql.

create table byrote_steps (
  result_id uuid not null,
  at timestamptz not null,
  -- The end of a sleep or the timeout of a wait; a wait with null has no timeout.
  wake_at timestamptz,
  sequence integer not null,
  attempt integer not null,
  -- A sleep or a wait that is not over yet.
  open boolean not null,
  kind text collate "C" not null,
  name text collate "C" not null,
  result_hash bytea,
  result_json text,
  -- The branch of the task that called the step, and the position in it; null where only the sequence is known.
  place text collate "C",
  -- SHA-256 of the arguments in their exact form (core/json/exact.py); null where they are not JSON.
  args_hash bytea,
  primary key (result_id, sequence),
  constraint byrote_step_is_sound check (
    case kind
      when 'step' then not open and result_json is not null and octet_length(result_hash) = 32
      -- The step's function raised; the error is in result_json. Only a replay of its attempt reads it.
      when 'raised' then not open and result_json is not null and octet_length(result_hash) = 32
      -- The task caught it and went on: later attempts raise it again.
      when 'failed' then not open and result_json is not null and octet_length(result_hash) = 32
      when 'sleep' then wake_at is not null and result_json is null
      when 'event' then not (open and result_json is not null)
      else false
    end
    and octet_length(args_hash) = 32
  )
);
create index byrote_steps_for_forget on byrote_steps (at);

create sequence byrote_signals_seq;

create table byrote_signals (
  result_id uuid not null,
  signal_id uuid not null,
  seq bigint not null default nextval('byrote_signals_seq'),
  at timestamptz not null,
  -- The sequence of the step that received it; null while none has.
  taken_by integer,
  name text collate "C" not null,
  payload_hash bytea not null,
  payload_json text not null,
  primary key (result_id, signal_id)
);
create index byrote_signals_for_wait on byrote_signals (result_id, name, seq) where taken_by is null;
create index byrote_signals_for_forget on byrote_signals (at);

create table byrote_once (
  result_id uuid not null,
  at timestamptz not null,
  key text collate "C" not null,
  primary key (result_id, key)
);
create index byrote_once_for_forget on byrote_once (at);

-- Volatile and not inlined, both: a statement that waited for the lock on the run's row then takes a new snapshot, and so
-- sees the signal or the wait that the other transaction has stored (finish.sql, signal.sql).
create function byrote_signalled(run uuid, event text) returns boolean
language plpgsql volatile
as $$
begin
  perform 1 from byrote_home.byrote_signals where result_id = run and name = event and taken_by is null;
  return found;
end
$$;

create function byrote_awaits(run uuid, event text) returns boolean
language plpgsql volatile
as $$
begin
  perform 1 from byrote_home.byrote_steps where result_id = run and open and kind = 'event' and name = event;
  return found;
end
$$;

-- A task may report a few times a second. Half of each page stays free and no index has a column that changes, so that a
-- new report stays on its page.
create table byrote_progress (
  result_id uuid primary key,
  at timestamptz not null,
  -- The pace is measured from here: the first report of the attempt, or of a phase that began at a lower percentage.
  began_at timestamptz not null,
  began_percent double precision not null,
  percent double precision not null,
  done double precision,
  total double precision,
  attempt integer not null,
  message text not null,
  data_json text,
  constraint byrote_progress_is_sound check (
    percent between 0 and 100
    and (done is null) = (total is null)
    and length(message) <= 500
    and octet_length(data_json) <= 4096
  )
) with (fillfactor = 50);
create index byrote_progress_for_forget on byrote_progress (began_at);

-- For statements that delete runs with their state: the runs of which another transaction has locked a step, a signal, a
-- mark or the progress. These stay as they are. The state of all others is locked here, so deleting it waits for no
-- transaction.
create function byrote_locked_state(runs uuid[]) returns setof uuid
language plpgsql volatile
as $$
begin
  return query
  with present as materialized (
    select result_id, tableoid, ctid from byrote_home.byrote_steps where result_id = any (runs)
    union all
    select result_id, tableoid, ctid from byrote_home.byrote_signals where result_id = any (runs)
    union all
    select result_id, tableoid, ctid from byrote_home.byrote_once where result_id = any (runs)
    union all
    select result_id, tableoid, ctid from byrote_home.byrote_progress where result_id = any (runs)
  ),
  steps as materialized (
    select result_id, tableoid, ctid from byrote_home.byrote_steps where result_id = any (runs) for update skip locked
  ),
  signals as materialized (
    select result_id, tableoid, ctid from byrote_home.byrote_signals where result_id = any (runs) for update skip locked
  ),
  marks as materialized (
    select result_id, tableoid, ctid from byrote_home.byrote_once where result_id = any (runs) for update skip locked
  ),
  reports as materialized (
    select result_id, tableoid, ctid from byrote_home.byrote_progress where result_id = any (runs) for update skip locked
  ),
  free as (
    select * from steps
    union all
    select * from signals
    union all
    select * from marks
    union all
    select * from reports
  )
  select distinct locked.result_id
  from (select * from present except select * from free) as locked;
end
$$;

create table byrote_outputs (
  result_id uuid not null,
  at timestamptz not null,
  -- Bytes before the stored end that were not stored.
  stdout_dropped bigint not null default 0,
  stderr_dropped bigint not null default 0,
  attempt integer not null,
  stdout text not null default '',
  stderr text not null default ''
) partition by range (at);

create index byrote_outputs_by_run on byrote_outputs (result_id, attempt);
create table byrote_outputs_rest partition of byrote_outputs default;

-- Bytes, not text: the client counts them to find what is new.
create table byrote_watched (
  result_id uuid primary key,
  until timestamptz not null,
  updated_at timestamptz,
  stdout_size bigint not null default 0,
  stderr_size bigint not null default 0,
  attempt integer not null default 0,
  stdout bytea not null default '',
  stderr bytea not null default ''
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- ---------------------------------------------------------------------------------------------------------------------
-- Artifacts

create table byrote_artifact_home (
  home uuid not null default gen_random_uuid()
);
insert into byrote_artifact_home default values;

-- A content that no artifact refers to is first marked as unused, and deleted an hour later. A statement that stores an
-- artifact with this content and has not seen the mark commits long before that, so it need not lock the row.
create table byrote_artifact_blobs (
  hash bytea primary key,
  size bigint not null,
  unused_since timestamptz,
  data bytea not null,
  constraint byrote_blob_is_sound check (size = octet_length(data) and size <= 1048576 and hash = sha256(data))
);
-- Contents are often compressed already, and are read whole.
alter table byrote_artifact_blobs alter column data set storage external;

create table byrote_artifacts (
  result_id uuid not null,
  at timestamptz not null,
  size bigint not null,
  attempt integer not null,
  name text collate "C" not null,
  hash bytea not null,
  media_type text not null,
  location text collate "C" not null,
  primary key (result_id, attempt, name),
  constraint byrote_artifact_is_sound check (
    size >= 0 and octet_length(hash) = 32 and length(name) between 1 and 200 and length(media_type) <= 200
  )
);
create index byrote_artifacts_by_hash on byrote_artifacts (hash);

-- ---------------------------------------------------------------------------------------------------------------------
-- Provenance and memo

-- Workers whose environments are equal in every respect share a row.
create table byrote_provenance (
  provenance_id integer generated always as identity primary key,
  hash bytea not null unique,
  doc jsonb not null,
  constraint byrote_provenance_is_sound check (octet_length(hash) = 32)
);

-- Volatile and not inlined: a statement that waited for another session's row reads again and sees it
-- (register_provenance.sql).
create function byrote_provenance_of(digest bytea) returns integer
language plpgsql volatile
as $$
begin
  return (select provenance_id from byrote_home.byrote_provenance where hash = digest);
end
$$;

-- Attempts without an environment are null. From the thousandth attempt on, only the latest is stored.
create function byrote_noted(kept integer[], attempt integer, id integer) returns integer[]
language sql immutable parallel safe
as $$
  select case
    when id is null then kept
    when attempt = 1 then array[id]
    else coalesce(kept[:least(attempt, 1000) - 1], '{}')
      || array_fill(
        null::integer,
        array[least(attempt, 1000) - 1 - coalesce(cardinality(kept[:least(attempt, 1000) - 1]), 0)]
      )
      || id
  end
$$;

-- Complete without the run that computed it (result_id), which may be archived or pruned in the meantime.
create table byrote_memo (
  result_id uuid not null,
  made_at timestamptz not null,
  kept_until timestamptz not null,
  -- The moment that ctx.now() returned in that run.
  as_of timestamptz not null,
  spec_hash bytea not null,
  code_hash bytea not null,
  result_hash bytea not null,
  task_path text collate "C" not null,
  return_json text not null,
  primary key (spec_hash, code_hash),
  constraint byrote_memo_is_sound check (
    octet_length(spec_hash) = 32 and octet_length(code_hash) = 32 and octet_length(result_hash) = 32
  )
);
create index byrote_memo_for_prune on byrote_memo (kept_until);

-- finish.sql calls it only for runs whose task has a memo, so that all others pay nothing for it. The result of a replay
-- is not stored: a replay repeats an earlier moment, and its steps may be those of another run. Nor is one whose place
-- another transaction has locked: the finish of this run, and of those beside it, does not wait for that.
create function byrote_remember(run uuid, memo jsonb, result text, hash bytea) returns void
language plpgsql volatile
as $$
begin
  insert into byrote_home.byrote_memo (
    result_id, made_at, kept_until, as_of, spec_hash, code_hash, result_hash, task_path, return_json
  )
  select
    done.result_id, clock.now, clock.now + (memo ->> 'keep_us')::bigint * interval '1 microsecond',
    coalesce(done.as_of, done.enqueued_at), done.spec_hash, decode(memo ->> 'code', 'hex'), hash, done.task_path, result
  from (select byrote_home.byrote_now() as now offset 0) as clock
  cross join byrote_home.byrote_task_runs as done
  where done.result_id = run
    and done.replay_of is null
    and (
      not exists (
        select 1
        from byrote_home.byrote_memo as known
        where known.spec_hash = done.spec_hash
          and known.code_hash = decode(memo ->> 'code', 'hex')
      )
      or exists (
        select 1
        from byrote_home.byrote_memo as known
        where known.spec_hash = done.spec_hash
          and known.code_hash = decode(memo ->> 'code', 'hex')
        for no key update skip locked
      )
    )
  on conflict (spec_hash, code_hash) do update
  set (result_id, made_at, kept_until, as_of, result_hash, return_json) = row (
    excluded.result_id, excluded.made_at, excluded.kept_until, excluded.as_of, excluded.result_hash, excluded.return_json
  );
end
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- Queues, workers, duties, schedules

create table byrote_queues (
  queue_name text collate "C" primary key,
  paused_at timestamptz,
  -- The waiting time that outweighs one step of priority; null: priority always wins.
  ageing interval,
  archive_after interval not null default '1 hour',
  keep_done interval not null default '30 days',
  keep_dead interval not null default '90 days',
  -- 'few' leaves out the events that only state that time passed (Promoted, Renewed). Runs count these moves all the same,
  -- so a gap in a run's moves is an event that was left out; quiet_since is when the first of them may have been.
  events text collate "C" not null default 'all',
  quiet_since timestamptz,
  -- How long a ready run waits for a worker that knows its task while others serve its queue; null: without limit.
  unserved_for interval default '24 hours',
  constraint byrote_ageing_is_positive check (ageing > interval '0'),
  constraint byrote_events_are_all_or_few check (events in ('all', 'few')),
  constraint byrote_unserved_for_is_positive check (unserved_for > interval '0')
);

create table byrote_workers (
  worker_id text collate "C" primary key,
  started_at timestamptz not null,
  seen_at timestamptz not null,
  idle boolean not null default false,
  stopping boolean not null default false,
  pid integer not null,
  hands integer not null,
  concurrency integer not null,
  running integer not null default 0,
  finished bigint not null default 0,
  host text not null,
  version text not null,
  python text not null,
  queues text[] not null,
  tasks text[] not null,
  -- Tasks that the worker leaves to workers that have a task of that name: the default aliases of its tasks.
  aliases text[] not null default '{}',
  -- Delivery options of its tasks by name@version, for callers that do not import the app; none if they are many.
  policies jsonb not null default '{}',
  -- The first of the tokens, rotated or not, that may use the worker's name over HTTP (byrote_tokens.holder).
  -- Null: a worker with a connection to the database, or a service.
  holder uuid
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Called once per statement, with the queues of the runs that it made READY. A worker that is not idle looks for work by
-- itself. Statements that are sent often leave out workers that were last seen before `since`: a commit with a
-- notification costs more. Returns how many queues it notified.
create function byrote_wake(ready text[], since timestamptz default '-infinity') returns integer
language plpgsql volatile
as $$
declare
  woken integer := 0;
begin
  if ready <> '{}' then
    perform pg_notify(byrote_home.byrote_channel('byrote_ready'), queue_name)
    from (select distinct unnest(ready) as queue_name) as fresh
    where exists (
      select 1
      from byrote_home.byrote_workers as worker
      where worker.idle
        and fresh.queue_name = any (worker.queues)
        and worker.seen_at > since
    );
    get diagnostics woken = row_count;
  end if;
  return woken;
end
$$;

-- Any worker may do a duty that is due. There is no election.
create table byrote_duties (
  duty text collate "C" primary key,
  next_at timestamptz not null,
  holder text,
  -- Depends on the duty. chain: the last link. prune: events before this moment (in microseconds) may be dropped.
  -- depths: not null after the first count.
  cursor text
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

insert into byrote_duties (duty, next_at)
values
  ('promote', '-infinity'),
  ('sweep', '-infinity'),
  ('beat', '-infinity'),
  ('unserved', '-infinity'),
  ('archive', '-infinity'),
  ('partition', '-infinity'),
  ('prune', '-infinity'),
  ('artifacts', '-infinity'),
  ('chain', '-infinity'),
  ('stats', '-infinity'),
  ('depths', '-infinity'),
  ('service', '-infinity');

-- The spec of a schedule is stored like a run's, byte for byte.
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
  -- Hash of the definition in a worker's app; a manual change stays until the definition changes. Null: not from an app.
  code_hash text,
  -- The error that paused it, if no person did.
  fault text
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

create index byrote_periodic_for_beat on byrote_periodic_tasks (next_at) where paused_at is null and next_at is not null;

-- Written by the duty `unserved`. `waited` is the time during which the duty found no worker; the row of a task is deleted
-- when a worker knows the task.
create table byrote_unserved (
  since timestamptz not null,
  seen_at timestamptz not null,
  waited interval not null default '0',
  task_version integer not null,
  queue_name text collate "C" not null,
  task_path text collate "C" not null,
  primary key (queue_name, task_path, task_version)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- ---------------------------------------------------------------------------------------------------------------------
-- Service

-- The token itself is shown once, to its owner; only its SHA-256 is stored.
create table byrote_tokens (
  token_id uuid primary key,
  -- The first token of a series of rotated ones: keyed requests belong to it.
  holder uuid not null,
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  used_at timestamptz,
  rate integer,
  hash bytea not null unique,
  name text not null,
  role text collate "C" not null,
  -- {*} is all of them.
  queues text[] not null,
  tasks text[] not null,
  constraint byrote_token_is_sound check (
    octet_length(hash) = 32
    and role in ('enqueue', 'work', 'read', 'admin')
    and cardinality(queues) > 0
    and cardinality(tasks) > 0
    and rate > 0
    and length(name) between 1 and 200
  )
);

-- One row per request that changed something, in the transaction of the change. Only the owner may change a row.
create table byrote_audit (
  audit_id bigint generated always as identity primary key,
  at timestamptz not null,
  token_id uuid,
  items integer not null,
  action text collate "C" not null,
  request_id text not null,
  address text,
  subject text,
  -- The first hundred; byrote_events has all of them.
  runs uuid[]
);
create index byrote_audit_by_time on byrote_audit using brin (at);

-- Kept for a day.
create table byrote_keys (
  holder uuid not null,
  at timestamptz not null,
  key text collate "C" not null,
  request_hash bytea not null,
  reply text not null,
  primary key (holder, key)
);
create index byrote_keys_for_prune on byrote_keys (at);

-- Written by a duty of the service. Counters have bucket 0; `wait` and `run` are histograms (byrote_bucket).
-- A count is the sum of its parts. There is usually one, 0; while another transaction has locked it, the next part is
-- added to. So is a depth.
create table byrote_stats (
  minute timestamptz not null,
  n bigint not null,
  task_version integer not null,
  bucket smallint not null,
  part smallint not null default 0,
  queue_name text collate "C" not null,
  task_path text collate "C" not null,
  measure text collate "C" not null,
  primary key (minute, queue_name, task_path, task_version, measure, bucket, part)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

-- A bucket is a quarter of a doubling of microseconds.
create function byrote_bucket(length interval) returns smallint
language sql immutable parallel safe
as $$
  select least(greatest(floor(4 * log(2.0, greatest(extract(epoch from length) * 1000000, 1))), 0), 200)::smallint
$$;

-- Accepted and not ended (live), and of those under a lease (running). How many of the others are due is not stored: a
-- queue with few events has none that a run became due.
create table byrote_depths (
  live bigint not null,
  running bigint not null,
  task_version integer not null,
  part smallint not null default 0,
  queue_name text collate "C" not null,
  task_path text collate "C" not null,
  primary key (queue_name, task_path, task_version, part)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- ---------------------------------------------------------------------------------------------------------------------
-- Retention, and functions with the owner's rights

create table byrote_retention (
  part text collate "C" primary key,
  keep_min interval not null,
  constraint byrote_retention_is_sound check (keep_min >= interval '0')
);
insert into byrote_retention (part, keep_min)
values
  ('byrote_audit', '30 days'),
  ('byrote_events', '7 days'),
  ('byrote_archive', '1 day'),
  ('byrote_outputs', '1 day');

-- Three functions act for roles that may not do the same themselves. Each resolves only built-in names, and qualifies ours
-- with their schema: a table of the caller's in pg_temp, or a function in a schema that the caller may write to, is never
-- found. They read the server's clock, not byrote_now().
--
-- The block below replaces byrote_home with the current schema, in these three and in all functions above.
do $migration$
declare
  home text := current_schema();
  -- A suffix with a hash: the name of a channel has 63 bytes at most, as that of a schema.
  suffix text := case home when 'public' then '' else '_' || left(encode(sha256(convert_to(home, 'UTF8')), 'hex'), 16) end;
  source text;
  made record;
begin
  execute format('create function byrote_home() returns text language sql immutable parallel safe return %L::text', home);
  execute format(
    'create function byrote_channel(name text) returns text language sql immutable parallel safe return name || %L', suffix
  );
  foreach source in array array[
    -- Creates the daily partitions from yesterday to `days` ahead; returns how many. A day whose rows are already in the
    -- default partition stays there: no rows are moved under a lock. A lock that is not available within 200 ms is given
    -- up, because other sessions would queue behind this one.
    $source$
create function byrote_home.byrote_make_partitions(days integer) returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
as $$
declare
  parent text;
  stamp text;
  child text;
  day date;
  made integer := 0;
  taken boolean;
begin
  if days is null or days not between 0 and 100 then
    raise exception 'partitions are made for 0 to 100 days ahead, not for %', days using errcode = 'invalid_parameter_value';
  end if;
  foreach parent in array array['byrote_archive', 'byrote_events', 'byrote_outputs'] loop
    stamp := case parent when 'byrote_archive' then 'finished_at' else 'at' end;
    for step in -1..days loop
      day := (clock_timestamp() at time zone 'UTC')::date + step;
      child := parent || '_' || to_char(day, 'YYYYMMDD');
      if to_regclass(format('%I.%I', 'byrote_home', child)) is not null then
        continue;
      end if;
      execute format(
        'select exists (select 1 from %I.%I where %I >= %L and %I < %L)',
        'byrote_home', parent || '_rest', stamp, day::text || ' 00:00+00', stamp, (day + 1)::text || ' 00:00+00'
      ) into taken;
      if not taken then
        execute format(
          'create table %I.%I partition of %I.%I for values from (%L) to (%L)',
          'byrote_home', child, 'byrote_home', parent, day::text || ' 00:00+00', (day + 1)::text || ' 00:00+00'
        );
        made := made + 1;
      end if;
    end loop;
  end loop;
  return made;
end
$$
    $source$,
    -- Drops the daily partitions of `parent` that end before `before`, oldest first, and deletes older rows of its default
    -- partition; returns the number of partitions dropped. A partition whose lock is not available within 200 ms, such as
    -- for a row that another transaction has locked, is left for the next time. Events are dropped in order, so there the
    -- later partitions are left, too: a run's history and the chain lose only their beginning. For events, the
    -- cursor of the duty `prune` records up to which moment they are gone, and links of the chain without any event left are
    -- deleted, except the last one, which the next one hashes.
    $source$
create function byrote_home.byrote_drop_partitions(parent text, stamp text, before timestamptz) returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
as $$
declare
  old record;
  least_kept interval;
  dropped integer := 0;
  emptied bigint := 0;
  hindered boolean := false;
  gone timestamptz;
begin
  if (parent, stamp) not in (('byrote_archive', 'finished_at'), ('byrote_events', 'at'), ('byrote_outputs', 'at'))
    or parent is null or stamp is null
  then
    raise exception 'no partitions of % are dropped by %', quote_nullable(parent), quote_nullable(stamp)
      using errcode = 'insufficient_privilege';
  end if;
  least_kept := (select keep_min from byrote_home.byrote_retention where part = parent);
  if (before <= clock_timestamp() - coalesce(least_kept, interval '0')) is not true then
    raise exception '% is kept for % at least, so nothing up to % is dropped', parent, coalesce(least_kept, '0'), before
      using errcode = 'insufficient_privilege', hint = 'The owner of byrote_retention may lower keep_min.';
  end if;
  for old in
    select child.relname, (to_date(right(child.relname, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC' as ended
    from pg_inherits
    join pg_class as child on child.oid = inhrelid
    where inhparent = format('%I.%I', 'byrote_home', parent)::regclass
      and child.relname ~ ('^' || parent || '_[0-9]{8}$')
      and to_date(right(child.relname, 8), 'YYYYMMDD') + 1 <= (before at time zone 'UTC')::date
    order by ended
  loop
    begin
      execute format('drop table %I.%I', 'byrote_home', old.relname);
    exception when lock_not_available then
      hindered := true;
      exit when parent = 'byrote_events';
      continue;
    end;
    dropped := dropped + 1;
    gone := greatest(gone, old.ended);
  end loop;
  if parent <> 'byrote_events' then
    execute format(
      'delete from %1$I.%2$I where ctid = any (array(select ctid from %1$I.%2$I where %3$I < %4$L for update skip locked))',
      'byrote_home', parent || '_rest', stamp, before
    );
  elsif not hindered then
    begin
      execute format('delete from %I.%I where %I < %L', 'byrote_home', parent || '_rest', stamp, before);
      get diagnostics emptied = row_count;
    exception when lock_not_available then
      emptied := 0;
    end;
  end if;
  if emptied > 0 then
    gone := before;
  end if;
  if parent = 'byrote_events' and gone is not null then
    update byrote_home.byrote_duties
    set cursor = greatest(cursor::bigint, byrote_home.byrote_micros(gone))::text
    where duty = 'prune';
    delete from byrote_home.byrote_chain
    where link < (select min(link) - 1 from byrote_home.byrote_chain where first_at >= gone);
  end if;
  return dropped;
end
$$
    $source$,
    -- Deletes entries of the audit that are older than `keep` and older than keep_min; returns how many. Entries that
    -- another transaction has locked are left for the next time.
    $source$
create function byrote_home.byrote_prune_audit(keep interval) returns integer
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
  with old as (
    delete from byrote_home.byrote_audit as entry
    where entry.ctid = any (array(
      select stale.ctid
      from byrote_home.byrote_audit as stale
      where stale.at < clock_timestamp()
        - greatest(keep, (select keep_min from byrote_home.byrote_retention where part = 'byrote_audit'), interval '0')
      for update skip locked
    ))
    returning 1
  )
  select count(*)::integer from old
$$
    $source$
  ] loop
    execute replace(replace(source, '''byrote_home''', quote_literal(home)), 'byrote_home.', quote_ident(home) || '.');
  end loop;
  for made in
    select pg_get_functiondef(oid) as definition, prosrc
    from pg_proc
    where pronamespace = quote_ident(home)::regnamespace
      and proname like 'byrote\_%'
      and prosrc like '%byrote\_home.byrote\_%'
  loop
    execute replace(made.definition, made.prosrc, replace(made.prosrc, 'byrote_home.', quote_ident(home) || '.'));
  end loop;
end
$migration$;

revoke all on function byrote_make_partitions(integer) from public;
revoke all on function byrote_drop_partitions(text, text, timestamptz) from public;
revoke all on function byrote_prune_audit(interval) from public;

select byrote_make_partitions(14);

-- ---------------------------------------------------------------------------------------------------------------------
-- Views for people: docs/reference/views.md. They read runs rather than events where runs have the answer, and leave out
-- shadow runs.

create view byrote_throughput_by_hour as
select
  date_trunc('hour', finished_at, 'UTC') as hour,
  queue_name,
  count(*) filter (where status = 'SUCCESSFUL') as succeeded,
  count(*) filter (where status = 'FAILED') as failed,
  count(*) filter (where status = 'CANCELLED') as cancelled
from byrote_runs
where finished_at is not null and shadow is not true
group by 1, 2;

create view byrote_wait_by_queue as
select
  date_trunc('hour', started_at, 'UTC') as hour,
  queue_name,
  count(*) as runs,
  percentile_cont(0.5) within group (order by waited) as p50_s,
  percentile_cont(0.95) within group (order by waited) as p95_s,
  max(waited) as max_s
from (
  -- A retry changes run_after; only for first attempts is it still the moment at which the run was due.
  select queue_name, started_at, extract(epoch from started_at - greatest(enqueued_at, run_after))::float8 as waited
  from byrote_runs
  where started_at is not null and attempts = 1 and shadow is not true
) as first
group by 1, 2;

create view byrote_errors_by_class as
select
  run.task_path,
  error ->> 'kind' as kind,
  error ->> 'type' as type,
  count(*) as errors,
  count(distinct run.result_id) as runs,
  max((error ->> 'at')::timestamptz) as last_at
from byrote_runs as run
cross join lateral jsonb_array_elements(run.errors_json) as error
where run.shadow is not true
group by 1, 2, 3;

create view byrote_slowest_tasks as
select
  task_path,
  task_version,
  count(*) as runs,
  percentile_cont(0.5) within group (order by took) as p50_s,
  percentile_cont(0.95) within group (order by took) as p95_s,
  max(took) as max_s
from (
  select task_path, task_version, extract(epoch from finished_at - last_attempted_at)::float8 as took
  from byrote_runs
  where status = 'SUCCESSFUL' and last_attempted_at is not null and shadow is not true
) as done
group by 1, 2;

create view byrote_deployments as
select
  run.task_path,
  run.task_version,
  environment.doc #>> array['code', 'tasks', run.task_path || '@' || run.task_version, 'function'] as code_hash,
  environment.doc #>> '{vcs,commit}' as commit,
  min(run.finished_at) as first_at,
  max(run.finished_at) as last_at,
  count(*) filter (where run.status = 'SUCCESSFUL') as succeeded,
  count(*) filter (where run.status = 'FAILED') as failed,
  avg(run.attempts)::float8 as attempts_mean,
  percentile_cont(0.5) within group (order by extract(epoch from run.finished_at - run.last_attempted_at)::float8) as p50_s,
  percentile_cont(0.95) within group (order by extract(epoch from run.finished_at - run.last_attempted_at)::float8) as p95_s
from byrote_runs as run
join byrote_provenance as environment on environment.provenance_id = run.provenance[cardinality(run.provenance)]
where run.finished_at is not null and run.shadow is not true
group by 1, 2, 3, 4;
