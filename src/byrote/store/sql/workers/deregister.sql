-- Delete a worker that stops from the registry; with a holder, only the holder's own workers.
-- Never waits: a worker whose row another transaction has locked stays registered until it is pruned as silent.
delete from byrote_workers
where worker_id = (
  select worker_id
  from byrote_workers
  where worker_id = %(worker)s
    and (%(holder)s::uuid is null or holder = %(holder)s::uuid)
  for update skip locked
)
returning worker_id;
