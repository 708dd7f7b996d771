-- The log carries the hashes of what runs store, so that its chain covers them and a text that was changed together with
-- the hash beside it is found.

-- One for each of `runs`, null where there is none: of Enqueued the spec's hash, of Succeeded and Remembered the
-- result's, of Signalled the payload's, of attempts that failed the hash of their error (byrote_error_hash).
-- Steps and artifacts are told by events of their own (StepStored, ArtifactStored). These move no run, so their `runs` are
-- empty and nothing that follows moves meets them; `data` has the run, in it the step or the artifact, and its facts.
alter table byrote_events add column digests bytea[];
alter table byrote_events alter column digests set storage external;

create or replace view byrote_event_log as
select
  event.seq,
  told.place,
  event.xid,
  event.at,
  event.kind,
  told.result_id,
  told.attempt,
  told.move,
  event.worker,
  event.lease_token,
  event.leased_until,
  event.data -> (told.result_id::text) as data,
  event.schema,
  told.digest
from byrote_events as event
cross join lateral unnest(event.runs, event.attempts, event.moves, event.digests)
  with ordinality as told (result_id, attempt, move, digest, place);

create function byrote_error_hash(error jsonb) returns bytea
language sql immutable parallel safe
as $$ select sha256(convert_to(error::text, 'UTF8')) $$;

-- As in 0009 for events without digests, so that links made before hold.
create or replace function byrote_event_hash(event byrote_events) returns bytea
language sql stable parallel safe
as $$
  select sha256(convert_to(
    (
      jsonb_build_array(
        event.seq, event.xid::text, byrote_micros(event.at), byrote_micros(event.leased_until), event.lease_token,
        event.schema, event.kind, event.worker, event.runs, event.attempts, event.moves, event.data
      )
      || case
        when event.digests is null then '[]'::jsonb
        else jsonb_build_array(encode(array_send(event.digests), 'hex'))
      end
    )::text,
    'UTF8'
  ))
$$;
