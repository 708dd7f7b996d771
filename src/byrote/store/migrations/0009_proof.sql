-- Reading the event log: in an order that no late commit upsets, as projections, and as a chain of hashes.

-- A transaction that began earlier may commit later, so a lower seq can become visible after a higher one. Readers
-- that follow the log therefore go by (xid, seq), and only up to the oldest transaction that is still under way.
create index byrote_events_by_xid on byrote_events (xid, seq);
drop index byrote_events_by_seq;

create or replace view byrote_event_log as
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
  event.data -> (told.result_id::text) as data,
  event.schema
from byrote_events as event
cross join lateral unnest(event.runs, event.attempts, event.moves)
  with ordinality as told (result_id, attempt, move, place);

-- The status an event leaves its run with; the rules of core/log/fold.py, for statements that ask about many runs at once.
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

-- events: `few` leaves out what only says that time passed (Promoted, Renewed). The moves are counted all the same, so
-- that a gap in a run's moves is what was not told; quiet_since is when the first of them may be.
alter table byrote_queues
  add column events text collate "C" not null default 'all',
  add column quiet_since timestamptz,
  add constraint byrote_events_are_all_or_few check (events in ('all', 'few'));

-- Each link hashes the one before it and the events up to (xid, seq): what was chained can no longer be changed, removed
-- or slipped in unnoticed. A duty adds links behind the log's back, so that no statement ever waits for another's hash.
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
as $$
  select sha256(convert_to(
    jsonb_build_array(
      event.seq, event.xid::text, byrote_micros(event.at), byrote_micros(event.leased_until), event.lease_token,
      event.schema, event.kind, event.worker, event.runs, event.attempts, event.moves, event.data
    )::text,
    'UTF8'
  ))
$$;

insert into byrote_duties (duty, next_at) values ('chain', '-infinity');

-- Projections, documented in docs/reference/views.md. They read rows, not the log, where a row has the answer. Shadow
-- runs are left out.
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
  -- A retry moves run_after; only of first attempts it still says when the run was due.
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
  told.doc #>> array['code', 'tasks', run.task_path || '@' || run.task_version, 'function'] as code_hash,
  told.doc #>> '{vcs,commit}' as commit,
  min(run.finished_at) as first_at,
  max(run.finished_at) as last_at,
  count(*) filter (where run.status = 'SUCCESSFUL') as succeeded,
  count(*) filter (where run.status = 'FAILED') as failed,
  avg(run.attempts)::float8 as attempts_mean,
  percentile_cont(0.5) within group (order by extract(epoch from run.finished_at - run.last_attempted_at)::float8) as p50_s,
  percentile_cont(0.95) within group (order by extract(epoch from run.finished_at - run.last_attempted_at)::float8) as p95_s
from byrote_runs as run
join byrote_provenance as told on told.provenance_id = run.provenance[cardinality(run.provenance)]
where run.finished_at is not null and run.shadow is not true
group by 1, 2, 3, 4;
