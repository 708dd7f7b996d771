-- How far runs under way have come, as their tasks tell it: one row per run that tells, written again a few times a second.
-- Half the page is free and no index has a column that changes, so that a new report stays on its page.
create table byrote_progress (
  result_id uuid primary key,
  at timestamptz not null,
  -- The pace is measured from here: the first report of the attempt, or of a phase that began at less than before.
  began_at timestamptz not null,
  began_percent double precision not null,
  percent double precision not null,
  done double precision,
  total double precision,
  attempt integer not null,
  message text not null,
  data_json text,
  constraint byrote_progress_is_sound check (
    percent between 0 and 100
    and (done is null) = (total is null)
    and length(message) <= 500
    and octet_length(data_json) <= 4096
  )
) with (fillfactor = 50);
create index byrote_progress_for_forget on byrote_progress (began_at);
