-- Take a worker that stops off the list; with a holder, its own workers only.
-- Never waits: one whose row another transaction has locked stays on the list until it is pruned as silent.
delete from byrote_workers
where worker_id = (
  select worker_id
  from byrote_workers
  where worker_id = %(worker)s
    and (%(holder)s::uuid is null or holder = %(holder)s::uuid)
  for update skip locked
)
returning worker_id;
