-- Ask to be woken, or stop asking.
update byrote_workers
set idle = %(idle)s
where worker_id = %(worker)s
returning worker_id;
