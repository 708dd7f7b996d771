-- The facts that decide the rights of this login: its name, the Byrote roles it has, whether every user may create
-- objects in the schema of our tables, and whether sessions can set the clock, as in a database for tests.
select
  current_user::text as login,
  array(
    select rolname::text
    from pg_roles
    where rolname in ('byrote_enqueue', 'byrote_worker', 'byrote_read', 'byrote_service', 'byrote_owner')
      and pg_has_role(current_user, oid, 'usage')
    order by rolname
  ) as roles,
  has_schema_privilege('public', byrote_home(), 'create') as open_schema,
  (
    select prosrc like '%%byrote.now%%'
    from pg_proc
    where proname = 'byrote_now'
      and pronamespace = quote_ident(byrote_home())::regnamespace
  ) as clock_is_set;
