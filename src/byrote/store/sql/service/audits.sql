-- The latest entries of the audit, newest first.
select at, token_id::text, items, action, request_id, address, subject, runs::text[]
from byrote_audit
order by audit_id desc
limit %(limit)s;
