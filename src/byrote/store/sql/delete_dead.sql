-- Delete dead letters for good.
delete from byrote_dead
where result_id = any (%(ids)s::uuid[])
returning result_id::text;
