-- Whether names without a schema are also looked up in this one.
select %(schema)s::text = any (current_schemas(false)) as found;
