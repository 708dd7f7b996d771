-- Every accepted run ends, also one of a task or version that no worker knows.

-- How long a ready run waits for a worker that knows its task while others serve its queue; null is for ever.
alter table byrote_queues
  add column unserved_for interval default '24 hours',
  add constraint byrote_unserved_for_is_positive check (unserved_for > interval '0');

-- Tasks that no live worker of their queue knows. The duty `unserved` sees to it: `waited` is the time during which it
-- was seen so, and a task that a worker knows is not here.
create table byrote_unserved (
  since timestamptz not null,
  seen_at timestamptz not null,
  waited interval not null default '0',
  task_version integer not null,
  queue_name text collate "C" not null,
  task_path text collate "C" not null,
  primary key (queue_name, task_path, task_version)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

insert into byrote_duties (duty, next_at) values ('unserved', '-infinity');

-- A run that fails because no worker knows its task was in nobody's hands: no worker is named.
create or replace function byrote_running_change(kind text, worker text) returns integer
language sql immutable parallel safe
as $$
  select case
    when kind = 'Claimed' then 1
    when kind in ('Succeeded', 'Retried', 'Snoozed', 'Released', 'Crashed', 'Lost') then -1
    when kind in ('Cancelled', 'Failed') and worker is not null then -1
    else 0
  end
$$;
