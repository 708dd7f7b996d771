-- The ledgers of these runs: every step, in order. Served by the primary key.
select
  result_id::text, sequence, kind, name, open, result_json, encode(result_hash, 'hex') as result_hash, attempt, at, wake_at,
  place, encode(args_hash, 'hex') as args_hash
from byrote_steps
where result_id = any (%(ids)s::uuid[])
order by result_id, sequence;
