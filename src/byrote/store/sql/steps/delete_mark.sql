-- Delete the mark of a verb whose answer has been received; a mark left behind is deleted with those of old runs.
delete from byrote_once
where result_id = %(id)s::uuid
  and key = %(key)s
returning key;
