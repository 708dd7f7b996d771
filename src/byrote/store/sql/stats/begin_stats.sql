-- Begin to count events at the end of the log, unless another process has begun. Never waits.
update byrote_duties
set cursor = %(cursor)s
where duty = (select duty from byrote_duties where duty = 'stats' and cursor is null for no key update skip locked)
returning duty;
