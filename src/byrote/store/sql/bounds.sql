-- Where the log of events stands: every transaction of this database below this one has ended.
select byrote_settled()::text as low;
