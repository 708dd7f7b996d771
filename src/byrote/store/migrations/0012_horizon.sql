-- What retention has dropped from the log is noted, so that nobody who checks the log has to guess it.

-- As in 0001, and besides: of events, how far they may be gone is kept with the duty that drops them, in microseconds.
-- Links of the chain that no event is left of go with them, but for the last one, which the next was made from.
create or replace function byrote_drop_partitions(parent text, stamp text, before timestamptz) returns integer
language plpgsql
set lock_timeout = '200ms'
as $$
declare
  old record;
  dropped integer := 0;
  emptied bigint;
  gone timestamptz;
begin
  for old in
    select child.relname, (to_date(right(child.relname, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC' as ended
    from pg_inherits
    join pg_class as child on child.oid = inhrelid
    where inhparent = parent::regclass
      and child.relname ~ ('^' || parent || '_[0-9]{8}$')
      and to_date(right(child.relname, 8), 'YYYYMMDD') + 1 <= (before at time zone 'UTC')::date
  loop
    execute format('drop table %I', old.relname);
    dropped := dropped + 1;
    gone := greatest(gone, old.ended);
  end loop;
  execute format('delete from %I where %I < %L', parent || '_rest', stamp, before);
  get diagnostics emptied = row_count;
  if emptied > 0 then
    gone := before;
  end if;
  if parent = 'byrote_events' and gone is not null then
    update byrote_duties
    set cursor = greatest(cursor::bigint, byrote_micros(gone))::text
    where duty = 'prune';
    delete from byrote_chain
    where link < (select min(link) - 1 from byrote_chain where first_at >= gone);
  end if;
  return dropped;
end
$$;

-- A database that has been used may have dropped events already: up to the oldest that are there.
update byrote_duties
set cursor = byrote_micros(least(
  (
    select min(to_date(right(child.relname, 8), 'YYYYMMDD'))::timestamp at time zone 'UTC'
    from pg_inherits
    join pg_class as child on child.oid = inhrelid
    where inhparent = 'byrote_events'::regclass
      and child.relname ~ '^byrote_events_[0-9]{8}$'
  ),
  (select min(at) from byrote_events_rest),
  clock_timestamp()
))::text
where duty = 'prune'
  and exists (select 1 from byrote_events);
