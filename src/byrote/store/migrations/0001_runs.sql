-- The queue, its results, its dead letters, its history: everything the heart of Byrote keeps.
-- Tables carry the prefix byrote_ and live wherever the search path points.

-- The one clock of every statement. A session may set byrote.now to move it; tests do, nobody else should.
-- Volatile, so that the planner inlines it; statements wrap it in (select …) to ask it once.
create function byrote_now() returns timestamptz
language sql volatile parallel safe
as $$ select coalesce(nullif(current_setting('byrote.now', true), '')::timestamptz, clock_timestamp()) $$;

-- Stable, as date_part is for timestamptz: declared immutable it could not be inlined.
create function byrote_micros(moment timestamptz) returns bigint
language sql stable parallel safe
as $$ select (date_part('epoch', moment) * 1000000)::bigint $$;

create table byrote_task_runs (
  -- Fixed width first: no padding between columns, and offsets the executor can cache.
  result_id uuid primary key,
  workflow_id uuid,
  replay_of uuid,
  lease_token uuid,
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
  -- One constraint, not seven, and a short one: every statement that writes here reads its text anew.
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
  -- Half a page is kept free: the two updates of a run stay on its page, which halves the WAL.
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 10000,
  autovacuum_vacuum_insert_scale_factor = 0.1,
  autovacuum_analyze_scale_factor = 0.05,
  autovacuum_vacuum_cost_delay = 0
);

-- Specs and results are kept as sent; compressing them on the hot path would cost more than it saves.
alter table byrote_task_runs alter column spec_hash set storage plain;
alter table byrote_task_runs alter column result_hash set storage plain;

create index byrote_ready_for_claim on byrote_task_runs (queue_name, rank) where status = 'READY';
create index byrote_waiting_for_promote on byrote_task_runs (run_after) where status = 'WAITING';
create index byrote_leased_for_sweep on byrote_task_runs (leased_until) where status = 'RUNNING';

create table byrote_archive (
  like byrote_task_runs including defaults including constraints including storage
) partition by range (finished_at);

create index byrote_archived_by_id on byrote_archive (result_id);
create index byrote_archived_by_hash on byrote_archive (spec_hash);
create table byrote_archive_rest partition of byrote_archive default;

create table byrote_dead (
  like byrote_task_runs including defaults including constraints including storage,
  primary key (result_id)
);
create index byrote_dead_for_prune on byrote_dead (finished_at);
create index byrote_dead_by_queue on byrote_dead (queue_name, finished_at);
create index byrote_dead_by_task on byrote_dead (task_path, finished_at);
create index byrote_dead_by_hash on byrote_dead (spec_hash);

create view byrote_runs as
select * from byrote_task_runs
union all
select * from byrote_archive
union all
select * from byrote_dead;

-- One row per statement that moved runs, not one per run: a fact about a set costs almost nothing.
-- byrote_event_log shows it run by run. xid orders readers: a seq may become visible after a higher one.
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
  runs uuid[] not null,
  attempts integer[] not null,
  moves integer[] not null,
  data jsonb
) partition by range (at);

alter table byrote_events alter column runs set storage external;
alter table byrote_events alter column attempts set storage external;
alter table byrote_events alter column moves set storage external;

create index byrote_events_by_seq on byrote_events (seq);
create index byrote_events_by_time on byrote_events using brin (at) with (pages_per_range = 16);
create table byrote_events_rest partition of byrote_events default;

create view byrote_event_log as
select
  event.seq,
  told.place,
  event.xid,
  event.at,
  event.kind,
  told.result_id,
  told.attempt,
  told.move,
  event.worker,
  event.lease_token,
  event.leased_until,
  event.data -> (told.result_id::text) as data
from byrote_events as event
cross join lateral unnest(event.runs, event.attempts, event.moves)
  with ordinality as told (result_id, attempt, move, place);

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
  tasks text[] not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

create table byrote_queues (
  queue_name text collate "C" primary key,
  paused_at timestamptz,
  -- How much waiting outweighs one step of priority; null is never: priority always wins.
  ageing interval,
  archive_after interval not null default '1 hour',
  keep_done interval not null default '30 days',
  keep_dead interval not null default '90 days',
  constraint byrote_ageing_is_positive check (ageing > interval '0')
);

-- Housekeeping that some worker, any worker, does when it is due. Nobody is elected.
create table byrote_duties (
  duty text collate "C" primary key,
  next_at timestamptz not null,
  holder text,
  cursor text
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

insert into byrote_duties (duty, next_at)
values
  ('promote', '-infinity'),
  ('sweep', '-infinity'),
  ('archive', '-infinity'),
  ('partition', '-infinity'),
  ('prune', '-infinity');

-- A lock that is not to be had at once is not waited for: everybody else would queue behind us.
-- Makes the daily partitions of the archive and of the events from yesterday to `days` ahead.
-- A day whose rows already lie in the default partition stays there: nothing is moved under a lock.
create function byrote_make_partitions(days integer) returns integer
language plpgsql
set lock_timeout = '200ms'
as $$
declare
  parent text;
  stamp text;
  day date;
  made integer := 0;
  taken boolean;
begin
  foreach parent in array array['byrote_archive', 'byrote_events'] loop
    stamp := case parent when 'byrote_archive' then 'finished_at' else 'at' end;
    for step in -1..days loop
      day := (byrote_now() at time zone 'UTC')::date + step;
      if to_regclass(parent || '_' || to_char(day, 'YYYYMMDD')) is not null then
        continue;
      end if;
      execute format(
        'select exists (select 1 from %I where %I >= %L and %I < %L)',
        parent || '_rest', stamp, day::text || ' 00:00+00', stamp, (day + 1)::text || ' 00:00+00'
      ) into taken;
      if not taken then
        execute format(
          'create table %I partition of %I for values from (%L) to (%L)',
          parent || '_' || to_char(day, 'YYYYMMDD'), parent,
          day::text || ' 00:00+00', (day + 1)::text || ' 00:00+00'
        );
        made := made + 1;
      end if;
    end loop;
  end loop;
  return made;
end
$$;

-- Drops the daily partitions of `parent` that end before `before`, and empties its default partition up to there.
create function byrote_drop_partitions(parent text, stamp text, before timestamptz) returns integer
language plpgsql
set lock_timeout = '200ms'
as $$
declare
  old record;
  dropped integer := 0;
begin
  for old in
    select child.relname
    from pg_inherits
    join pg_class as child on child.oid = inhrelid
    where inhparent = parent::regclass
      and child.relname ~ ('^' || parent || '_[0-9]{8}$')
      and to_date(right(child.relname, 8), 'YYYYMMDD') + 1 <= (before at time zone 'UTC')::date
  loop
    execute format('drop table %I', old.relname);
    dropped := dropped + 1;
  end loop;
  execute format('delete from %I where %I < %L', parent || '_rest', stamp, before);
  return dropped;
end
$$;

select byrote_make_partitions(14);
