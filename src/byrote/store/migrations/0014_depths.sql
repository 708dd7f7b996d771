-- How many runs of each task lie in each queue, kept from the log of events instead of counted.

-- Accepted and not ended (live), and of those in somebody's hands (running). Which of the others are due is not kept: a
-- queue that tells few events does not tell that a run has become due.
create table byrote_depths (
  live bigint not null,
  running bigint not null,
  task_version integer not null,
  queue_name text collate "C" not null,
  task_path text collate "C" not null,
  primary key (queue_name, task_path, task_version)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Its cursor says that there was a first count.
insert into byrote_duties (duty, next_at) values ('depths', '-infinity');

-- By how much an event changes the number of live runs. Of those revived, the dead ones say so: the others were waiting.
create function byrote_live_change(kind text, data jsonb) returns integer
language sql immutable parallel safe
as $$
  select case
    when kind = 'Enqueued' or (kind = 'Revived' and data ->> 'was' = 'FAILED') then 1
    when kind in ('Succeeded', 'Failed', 'Cancelled', 'Remembered') then -1
    else 0
  end
$$;

-- By how much it changes the number of running ones. Who cancels a run that nobody runs is no worker.
create function byrote_running_change(kind text, worker text) returns integer
language sql immutable parallel safe
as $$
  select case
    when kind = 'Claimed' then 1
    when kind in ('Succeeded', 'Failed', 'Retried', 'Snoozed', 'Released', 'Crashed', 'Lost') then -1
    when kind = 'Cancelled' and worker is not null then -1
    else 0
  end
$$;
