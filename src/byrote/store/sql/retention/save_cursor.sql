-- Remember how far a duty came. Never waits: a place that is not remembered is gone to again.
update byrote_duties
set cursor = %(cursor)s
where duty = (select duty from byrote_duties where duty = %(duty)s for no key update skip locked)
returning duty;
