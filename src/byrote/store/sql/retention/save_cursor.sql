-- Store how far a duty has come. Never waits: from a cursor that is not stored, the duty repeats some work.
update byrote_duties
set cursor = %(cursor)s
where duty = (select duty from byrote_duties where duty = %(duty)s for no key update skip locked)
returning duty;
