-- Whether a run has been accepted, wherever it lies; asked before an enqueue is sent again.
select exists (select 1 from byrote_runs where result_id = %(id)s::uuid) as known;
