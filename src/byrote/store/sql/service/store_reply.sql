-- Keep the answer to a keyed request, in one transaction with what it does. Refused by the primary key if it was done.
insert into byrote_keys (holder, at, key, request_hash, reply)
values (%(holder)s::uuid, (select byrote_now()), %(key)s, %(hash)s, %(reply)s);
