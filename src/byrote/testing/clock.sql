-- Let sessions of a test database set the time: `byrote.now` stands in for the server's clock in every function of ours.
-- It replaces functions, so it takes their owner; a database that holds real runs must never have it.
do $$
declare
  shipped record;
begin
  for shipped in
    select pg_get_functiondef(oid) as source
    from pg_proc
    where proname like 'byrote\_%'
      and pg_function_is_visible(oid)
      and prosrc like '%clock_timestamp()%'
      and prosrc not like '%byrote.now%'
  loop
    execute replace(
      shipped.source,
      'clock_timestamp()',
      'coalesce(nullif(current_setting(''byrote.now'', true), '''')::timestamptz, clock_timestamp())'
    );
  end loop;
end
$$
