-- The stored reply to a keyed request, and the hash of the request's body.
select request_hash, reply
from byrote_keys
where holder = %(holder)s::uuid
  and key = %(key)s;
