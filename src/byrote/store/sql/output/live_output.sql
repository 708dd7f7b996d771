-- Store the latest output of a watched run's attempt. Returns no row if no client watches the run.
update byrote_watched
set told_at = (select byrote_now()),
    attempt = %(attempt)s,
    stdout = %(stdout)s::bytea,
    stderr = %(stderr)s::bytea,
    stdout_size = %(stdout_size)s,
    stderr_size = %(stderr_size)s
where result_id = %(id)s::uuid
returning 1;
