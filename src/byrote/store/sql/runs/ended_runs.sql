-- Which of these runs have ended, in whichever table they are.
select result_id::text
from byrote_runs
where result_id = any (%(ids)s::uuid[])
  and finished_at is not null;
