-- What a run has done so far and what it waits for: finished steps, signals sent to it, marks of effects done once.
-- No foreign keys: the hot table must not pay for them. delete_orphans.sql and prune.sql delete what belongs to runs that are gone.
create table byrote_steps (
  result_id uuid not null,
  at timestamptz not null,
  -- Of a sleep its end, of a wait its timeout; null waits for ever.
  wake_at timestamptz,
  sequence integer not null,
  attempt integer not null,
  -- A sleep or a wait that is not over yet.
  open boolean not null,
  kind text collate "C" not null,
  name text collate "C" not null,
  result_hash bytea,
  result_json text,
  primary key (result_id, sequence),
  constraint byrote_step_is_sound check (
    case kind
      when 'step' then not open and result_json is not null and octet_length(result_hash) = 32
      when 'sleep' then wake_at is not null and result_json is null
      when 'event' then not (open and result_json is not null)
      else false
    end
  )
);
create index byrote_steps_for_forget on byrote_steps (at);

create sequence byrote_signals_seq;

create table byrote_signals (
  result_id uuid not null,
  signal_id uuid not null,
  seq bigint not null default nextval('byrote_signals_seq'),
  at timestamptz not null,
  -- The step that heard it; null while nobody has.
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

-- Whether a signal is there that no wait has heard. Volatile and not inlined: a statement that had to wait for the run's
-- row asks again with fresh eyes, and so sees the signal of whoever held the row (finish.sql, signal.sql).
create function byrote_signalled(run uuid, event text) returns boolean
language plpgsql volatile
as $$
begin
  perform 1 from byrote_signals where result_id = run and name = event and taken_by is null;
  return found;
end
$$;

-- Whether a run has an open wait for this event; volatile for the same reason.
create function byrote_awaits(run uuid, event text) returns boolean
language plpgsql volatile
as $$
begin
  perform 1 from byrote_steps where result_id = run and open and kind = 'event' and name = event;
  return found;
end
$$;
