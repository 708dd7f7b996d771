-- Set whether a worker wants to be notified of work. Never waits; returns no row while another transaction has locked the
-- worker's row.
update byrote_workers
set idle = %(idle)s
where worker_id = (select worker_id from byrote_workers where worker_id = %(worker)s for no key update skip locked)
returning worker_id;
