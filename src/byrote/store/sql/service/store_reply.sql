-- Store the reply to a keyed request, in one transaction with its effect. The primary key refuses a second one.
insert into byrote_keys (holder, at, key, request_hash, reply)
values (%(holder)s::uuid, (select byrote_now()), %(key)s, %(hash)s, %(reply)s);
