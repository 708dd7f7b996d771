-- The cursor after which only the last few events lie.
select event.xid::text, event.seq
from byrote_events as event
where event.xid < (select byrote_settled())
order by event.xid desc, event.seq desc
offset %(back)s
limit 1;
