-- Whether a run has been accepted, in whichever table it is. Sent before an enqueue is sent again.
select exists (select 1 from byrote_runs where result_id = %(id)s::uuid) as known;
