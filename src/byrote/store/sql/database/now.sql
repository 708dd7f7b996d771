-- The time by the database's clock.
select byrote_now();
