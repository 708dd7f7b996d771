-- Events that no statement of Byrote has written: their arrays differ in length or have gaps, or their data has no runs.
select event.seq, event.kind
from byrote_events as event
where cardinality(event.runs) <> cardinality(event.attempts)
  or cardinality(event.runs) <> cardinality(event.moves)
  or cardinality(event.runs) <> cardinality(event.digests)
  or array_position(event.runs, null) is not null
  or array_position(event.attempts, null) is not null
  or array_position(event.moves, null) is not null
  or jsonb_typeof(event.data) <> 'object'
  or jsonb_path_exists(event.data, 'strict $.* ? (@.type() != "object")')
  or (event.kind in ('StepStored', 'ArtifactStored') and (event.data is null or cardinality(event.runs) > 0))
order by event.seq;
