-- Whether the event log has a run that is in no table any more; the id contains when it was enqueued. Served by
-- byrote_events_by_time.
select exists (
  select 1
  from byrote_events
  where at between %(around)s::timestamptz - interval '1 hour' and %(around)s::timestamptz + interval '1 hour'
    and kind = 'Enqueued'
    and runs @> array[%(id)s::uuid]
) as remembered;
