-- Shadow runs: executions that only check whether a spec still gives what it gave. `shadow` marks them; null is false.
-- Nobody is told of them, no list or count has them unless asked, and they go after a day.
alter table byrote_task_runs add column shadow boolean;
alter table byrote_archive add column shadow boolean;
alter table byrote_dead add column shadow boolean;

create or replace view byrote_runs as
select * from byrote_task_runs
union all
select * from byrote_archive
union all
select * from byrote_dead;

-- From a run to what repeats it. Ordinary runs are not in these indexes.
create index byrote_replays on byrote_task_runs (replay_of) where replay_of is not null;
create index byrote_archived_replays on byrote_archive (replay_of) where replay_of is not null;
create index byrote_dead_replays on byrote_dead (replay_of) where replay_of is not null;
