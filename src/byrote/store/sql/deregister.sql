-- Take a worker that stops off the list.
delete from byrote_workers
where worker_id = %(worker)s
returning worker_id;
