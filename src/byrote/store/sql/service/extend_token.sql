-- Extend a token from now on; a revoked token stays revoked.
update byrote_tokens
set expires_at = (select byrote_now()) + %(expires)s::interval
where token_id = %(id)s::uuid
  and revoked_at is null
returning token_id::text;
