-- Record when tokens were last used.
update byrote_tokens
set used_at = (select byrote_now())
where token_id = any (%(ids)s::uuid[])
returning token_id::text;
