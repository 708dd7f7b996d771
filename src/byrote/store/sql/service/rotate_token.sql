-- Add a new token with the rights of an old one; the old one expires after `overlap`, unless it expires sooner.
with old as (
  update byrote_tokens
  set expires_at = least(expires_at, (select byrote_now()) + %(overlap)s::interval)
  where token_id = %(old)s::uuid
    and revoked_at is null
  returning holder, rate, name, role, queues, tasks
)
insert into byrote_tokens (token_id, holder, created_at, expires_at, rate, hash, name, role, queues, tasks)
select
  %(id)s::uuid, holder, (select byrote_now()), (select byrote_now()) + %(expires)s::interval, rate, %(hash)s, name, role,
  queues, tasks
from old
returning token_id::text;
