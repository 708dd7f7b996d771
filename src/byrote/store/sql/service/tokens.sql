-- Every token, newest first; never its secret or hash.
select
  token_id::text, holder::text, name, role, queues, tasks, rate, created_at, expires_at, revoked_at, used_at
from byrote_tokens
order by created_at desc, token_id desc;
