-- Store the latest output of a watched run's attempt. Returns no row if no client watches the run.
-- Never waits: if another transaction has locked the row, the next output is stored.
update byrote_watched
set updated_at = (select byrote_now()),
    attempt = %(attempt)s,
    stdout = %(stdout)s::bytea,
    stderr = %(stderr)s::bytea,
    stdout_size = %(stdout_size)s,
    stderr_size = %(stderr_size)s
where result_id = (select result_id from byrote_watched where result_id = %(id)s::uuid for no key update skip locked)
returning 1;
