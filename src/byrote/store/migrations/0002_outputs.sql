-- What attempts print: the end of stdout and of stderr, by day, forgotten with the events.
create table byrote_outputs (
  result_id uuid not null,
  at timestamptz not null,
  stdout_dropped bigint not null default 0,
  stderr_dropped bigint not null default 0,
  attempt integer not null,
  stdout text not null default '',
  stderr text not null default ''
) partition by range (at);

create index byrote_outputs_by_run on byrote_outputs (result_id, attempt);
create table byrote_outputs_rest partition of byrote_outputs default;

-- As in 0001, with one more parent.
create or replace function byrote_make_partitions(days integer) returns integer
language plpgsql
set lock_timeout = '200ms'
as $$
declare
  parent text;
  stamp text;
  day date;
  made integer := 0;
  taken boolean;
begin
  foreach parent in array array['byrote_archive', 'byrote_events', 'byrote_outputs'] loop
    stamp := case parent when 'byrote_archive' then 'finished_at' else 'at' end;
    for step in -1..days loop
      day := (byrote_now() at time zone 'UTC')::date + step;
      if to_regclass(parent || '_' || to_char(day, 'YYYYMMDD')) is not null then
        continue;
      end if;
      execute format(
        'select exists (select 1 from %I where %I >= %L and %I < %L)',
        parent || '_rest', stamp, day::text || ' 00:00+00', stamp, (day + 1)::text || ' 00:00+00'
      ) into taken;
      if not taken then
        execute format(
          'create table %I partition of %I for values from (%L) to (%L)',
          parent || '_' || to_char(day, 'YYYYMMDD'), parent,
          day::text || ' 00:00+00', (day + 1)::text || ' 00:00+00'
        );
        made := made + 1;
      end if;
    end loop;
  end loop;
  return made;
end
$$;

select byrote_make_partitions(14);
