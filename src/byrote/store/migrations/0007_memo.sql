-- Results that answer later runs of the same spec by the same code, and output that is watched while it is printed.

-- Complete in itself: it outlives the run it came from (result_id), which may be archived or pruned meanwhile.
create table byrote_memo (
  result_id uuid not null,
  made_at timestamptz not null,
  kept_until timestamptz not null,
  -- What ctx.now() said in that run.
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

-- Keep a run's result. Called by finish.sql for those alone whose task has a memo, so that all others pay nothing for it.
-- A replay is not kept: it repeats an earlier moment, and its steps may have been those of another run.
create function byrote_remember(run uuid, code bytea, keep interval, result text, hash bytea) returns void
language plpgsql volatile
as $$
begin
  insert into byrote_memo (result_id, made_at, kept_until, as_of, spec_hash, code_hash, result_hash, task_path, return_json)
  select
    done.result_id, clock.now, clock.now + keep, coalesce(done.as_of, done.enqueued_at), done.spec_hash, code, hash,
    done.task_path, result
  from (select byrote_now() as now offset 0) as clock
  cross join byrote_task_runs as done
  where done.result_id = run
    and done.replay_of is null
  on conflict (spec_hash, code_hash) do update
  set (result_id, made_at, kept_until, as_of, result_hash, return_json) = row (
    excluded.result_id, excluded.made_at, excluded.kept_until, excluded.as_of, excluded.result_hash, excluded.return_json
  );
end
$$;

-- memo_of: the run whose result answered this one when it was enqueued. Such a run is SUCCESSFUL from the first moment on
-- and never moves again but to the archive, so the statements that kill or revive runs have no use for it.
alter table byrote_task_runs add column memo_of uuid;
alter table byrote_archive add column memo_of uuid;
alter table byrote_dead add column memo_of uuid;

create or replace view byrote_runs as
select * from byrote_task_runs
union all
select * from byrote_archive
union all
select * from byrote_dead;

-- Runs that somebody watches until then, and the end of what their attempt under way has printed so far.
-- Bytes, not text: whoever watches counts them to see what is new.
create table byrote_watched (
  result_id uuid primary key,
  until timestamptz not null,
  told_at timestamptz,
  stdout_size bigint not null default 0,
  stderr_size bigint not null default 0,
  attempt integer not null default 0,
  stdout bytea not null default '',
  stderr bytea not null default ''
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
