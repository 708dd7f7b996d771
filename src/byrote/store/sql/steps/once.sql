-- Mark an effect of a run as done, in the caller's transaction; no row if it was done before.
-- Waits for a transaction that is doing it at this moment: only one of the two commits it.
insert into byrote_once (result_id, key, at)
values (%(id)s::uuid, %(key)s::text, byrote_now())
on conflict do nothing
returning 1 as first;
