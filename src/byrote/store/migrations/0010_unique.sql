-- unique_key: while a run with it is unfinished, its task accepts no other run with the same one.
-- A way of delivery, not part of what is computed: it is not hashed.
alter table byrote_task_runs add column unique_key text collate "C";
alter table byrote_archive add column unique_key text collate "C";
alter table byrote_dead add column unique_key text collate "C";

create or replace view byrote_runs as
select * from byrote_task_runs
union all
select * from byrote_archive
union all
select * from byrote_dead;

-- Runs without a key are not in it, nor are those that have ended: a key is free again with its run's end, whatever that is.
-- Its columns never change and `status` decides about other indexes already, so no update becomes dearer by it.
create unique index byrote_unique_for_enqueue on byrote_task_runs (task_path, unique_key)
where unique_key is not null and status in ('WAITING', 'READY', 'RUNNING');

-- Whether a run has been accepted, wherever it lies. A function, so that a statement that seldom asks is not planned anew
-- each time over all the days of the archive.
create function byrote_landed(run uuid) returns boolean
language plpgsql stable
as $$
begin
  return exists (select 1 from byrote_runs where result_id = run);
end
$$;
