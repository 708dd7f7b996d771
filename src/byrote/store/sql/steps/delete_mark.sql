-- Forget the mark of a verb that has been answered; one that is left behind is forgotten with those of old runs.
delete from byrote_once
where result_id = %(id)s::uuid
  and key = %(key)s
returning key;
