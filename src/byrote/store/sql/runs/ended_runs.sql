-- Which of these runs have come to their end, wherever they lie.
select result_id::text
from byrote_runs
where result_id = any (%(ids)s::uuid[])
  and finished_at is not null;
