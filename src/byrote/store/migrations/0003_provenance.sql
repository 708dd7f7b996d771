-- Which environment executed each attempt, and the moment a run takes for now.

-- Content-addressed: workers that are the same in every respect share a row.
create table byrote_provenance (
  provenance_id integer generated always as identity primary key,
  hash bytea not null unique,
  doc jsonb not null,
  constraint byrote_provenance_is_sound check (octet_length(hash) = 32)
);

-- as_of: what ctx.now() says; null is enqueued_at. A replay has the moment of the run it repeats.
-- provenance: one entry per attempt, null for those nobody spoke of.
-- usage: one object per attempt of tasks that ask to be measured.
alter table byrote_task_runs
  add column as_of timestamptz,
  add column provenance integer[],
  add column usage jsonb;
alter table byrote_archive
  add column as_of timestamptz,
  add column provenance integer[],
  add column usage jsonb;
alter table byrote_dead
  add column as_of timestamptz,
  add column provenance integer[],
  add column usage jsonb;

create or replace view byrote_runs as
select * from byrote_task_runs
union all
select * from byrote_archive
union all
select * from byrote_dead;

-- The provenance of a run's attempts with one more; gaps are null, and from the thousandth on only the latest is kept.
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
