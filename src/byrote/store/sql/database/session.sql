-- Describe the state of a session besides its data: the server's process, and a hash of its settings, role, temporary
-- schema, subscriptions, held cursors and prepared statements. Advisory locks are released on the way.
-- Two equal hashes mean that nothing was left behind in between.
select
    pg_backend_pid() as pid,
    md5(concat_ws(E'\n',
        session_user,
        current_user,
        pg_my_temp_schema()::text,
        (select string_agg(name || '=' || setting, E'\n' order by name) from pg_settings where source = 'session'),
        (select string_agg(channel, E'\n' order by channel) from pg_listening_channels() as channel),
        (select string_agg(name, E'\n' order by name) from pg_cursors where is_holdable),
        (select string_agg(name, E'\n' order by name) from pg_prepared_statements where from_sql)
    )) as state,
    pg_advisory_unlock_all() as unlocked
