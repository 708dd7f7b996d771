-- How many rows have a run's id, in all tables together. Sent after an enqueue was sent again, before its commit.
select count(*) as times from byrote_runs where result_id = %(id)s::uuid;
