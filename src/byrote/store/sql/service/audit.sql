-- Record who changed what, in one transaction with the change.
insert into byrote_audit (at, token_id, items, action, request_id, address, subject, runs)
values (
  (select byrote_now()), %(token)s::uuid, %(items)s, %(action)s, %(request)s, %(address)s, %(subject)s, %(runs)s::uuid[]
);
