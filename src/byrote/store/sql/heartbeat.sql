-- Say that a worker lives, what it does, and whether it waits for work.
update byrote_workers
set seen_at = (select byrote_now()),
    idle = %(idle)s,
    stopping = %(stopping)s,
    running = %(running)s,
    finished = %(finished)s
where worker_id = %(worker)s
returning worker_id;
