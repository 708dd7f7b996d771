-- Record when tokens were last used. Tokens that another transaction has locked are left out.
update byrote_tokens as token
set used_at = (select byrote_now())
where token.ctid = any (array(
  select used.ctid
  from byrote_tokens as used
  where used.token_id = any (%(ids)s::uuid[])
  for no key update skip locked
))
returning token_id::text;
