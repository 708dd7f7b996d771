-- What the HTTP service keeps: who may do what, what they did, answers to keyed requests, and counts of what happened.

-- The token itself is shown once and kept by its owner; here is only its SHA-256.
create table byrote_tokens (
  token_id uuid primary key,
  -- The first token of a line of rotated ones: what keyed requests belong to.
  holder uuid not null,
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  used_at timestamptz,
  rate integer,
  hash bytea not null unique,
  name text not null,
  role text collate "C" not null,
  -- {*} is every one.
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

-- One row per request that changed something, written with the change. Nobody but the owner may change a row.
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

-- The answer to a request with an Idempotency-Key, for a day.
create table byrote_keys (
  holder uuid not null,
  at timestamptz not null,
  key text collate "C" not null,
  request_hash bytea not null,
  reply text not null,
  primary key (holder, key)
);
create index byrote_keys_for_prune on byrote_keys (at);

-- Counts by minute, made of byrote_events by a duty of the service. A bucket of `wait` and `run` is a
-- quarter of a doubling of microseconds; counters have bucket 0.
create table byrote_stats (
  minute timestamptz not null,
  n bigint not null,
  task_version integer not null,
  bucket smallint not null,
  queue_name text collate "C" not null,
  task_path text collate "C" not null,
  measure text collate "C" not null,
  primary key (minute, queue_name, task_path, task_version, measure, bucket)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

insert into byrote_duties (duty, next_at) values ('stats', '-infinity'), ('service', '-infinity');

-- The service may add to the audit and not take from it: what is old is forgotten by this function alone, which
-- belongs to the owner and keeps a month whatever it is told.
create function byrote_prune_audit(keep interval) returns integer
language sql
security definer
set search_path from current  -- Or whoever calls it could put a function of theirs under our names.
as $$
  with old as (
    delete from byrote_audit
    where at < byrote_now() - greatest(keep, interval '30 days')
    returning 1
  )
  select count(*)::integer from old
$$;
revoke all on function byrote_prune_audit(interval) from public;

-- The bucket a duration falls into, and the seconds that stand for a bucket.
create function byrote_bucket(length interval) returns smallint
language sql immutable parallel safe
as $$
  select least(greatest(floor(4 * log(2.0, greatest(extract(epoch from length) * 1000000, 1))), 0), 200)::smallint
$$;
