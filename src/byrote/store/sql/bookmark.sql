-- Remember how far a duty came.
update byrote_duties
set cursor = %(cursor)s
where duty = %(duty)s
returning duty;
