-- How many events were ever begun: when it stands still, nothing has happened.
select last_value
from byrote_events_seq;
