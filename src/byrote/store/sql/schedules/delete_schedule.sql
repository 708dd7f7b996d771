-- Delete a periodic task; its runs stay.
delete from byrote_periodic_tasks
where name = %(name)s
returning name, code_hash is not null;
