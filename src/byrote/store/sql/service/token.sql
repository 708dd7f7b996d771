-- The token with this hash, and whether it is neither revoked nor expired.
select
  token_id::text, holder::text, hash, name, role, queues, tasks, rate, expires_at,
  revoked_at is null and coalesce(expires_at > (select byrote_now()), true) as good
from byrote_tokens
where hash = %(hash)s;
