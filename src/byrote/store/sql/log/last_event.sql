-- The number of events ever begun: while it does not change, nothing has happened.
select last_value
from byrote_events_seq;
