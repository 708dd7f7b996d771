-- What the log has of steps and artifacts, run by run and in order: sorted on disk by the server, read through a cursor.
select recorded.run, event.kind, recorded.entry, recorded.facts::text
from byrote_events as event
cross join lateral (
  select run.key collate "C" as run, entry.key as entry, entry.value as facts
  from jsonb_each(case jsonb_typeof(event.data) when 'object' then event.data else '{}' end) as run
  cross join lateral jsonb_each(case jsonb_typeof(run.value) when 'object' then run.value else '{}' end) as entry
) as recorded
where event.kind in ('StepStored', 'ArtifactStored')
order by recorded.run, event.seq;
