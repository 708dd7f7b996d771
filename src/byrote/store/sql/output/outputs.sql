-- The output of a run's attempts, all of them or one, in order. An attempt without output has no row.
-- Served by byrote_outputs_by_run.
select attempt, at, stdout, stderr, stdout_dropped, stderr_dropped
from byrote_outputs
where result_id = %(id)s::uuid
  and (%(attempt)s::integer is null or attempt = %(attempt)s::integer)
order by attempt;
