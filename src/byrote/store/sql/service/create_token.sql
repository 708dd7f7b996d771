-- Store a new token by its hash.
insert into byrote_tokens (token_id, holder, created_at, expires_at, rate, hash, name, role, queues, tasks)
values (
  %(id)s::uuid, %(id)s::uuid, (select byrote_now()), (select byrote_now()) + %(expires)s::interval, %(rate)s::integer,
  %(hash)s, %(name)s, %(role)s, %(queues)s::text[], %(tasks)s::text[]
)
returning token_id::text;
