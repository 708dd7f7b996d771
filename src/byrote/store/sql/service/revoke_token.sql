-- Revoke a token now; services that cache it drop it within seconds.
update byrote_tokens
set revoked_at = coalesce(revoked_at, (select byrote_now()))
where token_id = %(id)s::uuid
returning token_id::text;
