-- What runs with the owner's rights cannot be bent by its caller: neither by names, nor by arguments, nor by the clock.

-- The clock of every statement, with no setting that a session could move it by. A test that moves time replaces the
-- function, which takes the right of its owner (testing/clock.sql). Volatile, so that the planner inlines it;
-- statements wrap it in (select …) to evaluate it once.
create or replace function byrote_now() returns timestamptz
language sql volatile parallel safe
as $$ select clock_timestamp() $$;

-- How long each table keeps its rows at least, whatever a caller asks for. Only the owner may change it.
create table byrote_retention (
  part text collate "C" primary key,
  keep_min interval not null,
  constraint byrote_retention_is_sound check (keep_min >= interval '0')
);
insert into byrote_retention (part, keep_min)
values
  ('byrote_audit', '30 days'),
  ('byrote_events', '7 days'),
  ('byrote_archive', '1 day'),
  ('byrote_outputs', '1 day');

-- Three functions act for roles that may not do the same themselves. Each resolves built-in names alone, and names what
-- is ours with the schema it lies in: a table of the caller's in pg_temp, or a function in a schema that the caller may
-- write to, is never found. They read the server's clock, not byrote_now().
do $migration$
declare
  home text := current_schema();
  source text;
begin
  foreach source in array array[
    -- Makes the daily partitions from yesterday to `days` ahead. A day whose rows already lie in the default partition
    -- stays there: nothing is moved under a lock. A lock that is not available at once is not waited for.
    $source$
create or replace function byrote_home.byrote_make_partitions(days integer) returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
as $$
declare
  parent text;
  stamp text;
  child text;
  day date;
  made integer := 0;
  taken boolean;
begin
  if days is null or days not between 0 and 100 then
    raise exception 'partitions are made for 0 to 100 days ahead, not for %', days using errcode = 'invalid_parameter_value';
  end if;
  foreach parent in array array['byrote_archive', 'byrote_events', 'byrote_outputs'] loop
    stamp := case parent when 'byrote_archive' then 'finished_at' else 'at' end;
    for step in -1..days loop
      day := (clock_timestamp() at time zone 'UTC')::date + step;
      child := parent || '_' || to_char(day, 'YYYYMMDD');
      if to_regclass(format('%I.%I', 'byrote_home', child)) is not null then
        continue;
      end if;
      execute format(
        'select exists (select 1 from %I.%I where %I >= %L and %I < %L)',
        'byrote_home', parent || '_rest', stamp, day::text || ' 00:00+00', stamp, (day + 1)::text || ' 00:00+00'
      ) into taken;
      if not taken then
        execute format(
          'create table %I.%I partition of %I.%I for values from (%L) to (%L)',
          'byrote_home', child, 'byrote_home', parent, day::text || ' 00:00+00', (day + 1)::text || ' 00:00+00'
        );
        made := made + 1;
      end if;
    end loop;
  end loop;
  return made;
end
$$
    $source$,
    -- Drops the daily partitions of `parent` that end before `before`, and empties its default partition up to there.
    -- Of events, how far they are gone is kept with the duty that drops them, in microseconds. Links of the chain that
    -- no event is left of go with them, but for the last one, which the next was made from.
    $source$
create or replace function byrote_home.byrote_drop_partitions(parent text, stamp text, before timestamptz) returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
as $$
declare
  old record;
  least_kept interval;
  dropped integer := 0;
  emptied bigint;
  gone timestamptz;
begin
  if (parent, stamp) not in (('byrote_archive', 'finished_at'), ('byrote_events', 'at'), ('byrote_outputs', 'at'))
    or parent is null or stamp is null
  then
    raise exception 'no partitions of % are dropped by %', quote_nullable(parent), quote_nullable(stamp)
      using errcode = 'insufficient_privilege';
  end if;
  least_kept := (select keep_min from byrote_home.byrote_retention where part = parent);
  if (before <= clock_timestamp() - coalesce(least_kept, interval '0')) is not true then
    raise exception '% is kept for % at least, so nothing up to % is dropped', parent, coalesce(least_kept, '0'), before
      using errcode = 'insufficient_privilege', hint = 'The owner of byrote_retention may lower keep_min.';
  end if;
  for old in
    select child.relname, (to_date(right(child.relname, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC' as ended
    from pg_inherits
    join pg_class as child on child.oid = inhrelid
    where inhparent = format('%I.%I', 'byrote_home', parent)::regclass
      and child.relname ~ ('^' || parent || '_[0-9]{8}$')
      and to_date(right(child.relname, 8), 'YYYYMMDD') + 1 <= (before at time zone 'UTC')::date
  loop
    execute format('drop table %I.%I', 'byrote_home', old.relname);
    dropped := dropped + 1;
    gone := greatest(gone, old.ended);
  end loop;
  execute format('delete from %I.%I where %I < %L', 'byrote_home', parent || '_rest', stamp, before);
  get diagnostics emptied = row_count;
  if emptied > 0 then
    gone := before;
  end if;
  if parent = 'byrote_events' and gone is not null then
    update byrote_home.byrote_duties
    set cursor = greatest(cursor::bigint, byrote_home.byrote_micros(gone))::text
    where duty = 'prune';
    delete from byrote_home.byrote_chain
    where link < (select min(link) - 1 from byrote_home.byrote_chain where first_at >= gone);
  end if;
  return dropped;
end
$$
    $source$,
    -- Deletes entries of the audit that are older than `keep`, and younger ones than keep_min in no case.
    $source$
create or replace function byrote_home.byrote_prune_audit(keep interval) returns integer
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
  with old as (
    delete from byrote_home.byrote_audit
    where at < clock_timestamp()
      - greatest(keep, (select keep_min from byrote_home.byrote_retention where part = 'byrote_audit'), interval '0')
    returning 1
  )
  select count(*)::integer from old
$$
    $source$
  ] loop
    execute replace(replace(source, '''byrote_home''', quote_literal(home)), 'byrote_home.', quote_ident(home) || '.');
  end loop;
end
$migration$;

revoke all on function byrote_make_partitions(integer) from public;
revoke all on function byrote_drop_partitions(text, text, timestamptz) from public;
revoke all on function byrote_prune_audit(interval) from public;

-- The number of an environment. Volatile and not inlined: a statement that waited for another session's row reads again
-- and sees it (register_provenance.sql).
create function byrote_provenance_of(digest bytea) returns integer
language plpgsql volatile
as $$
begin
  return (select provenance_id from byrote_provenance where hash = digest);
end
$$;
