-- Return the number of an environment: its existing one, else a new one.
with known as (
  select provenance_id from byrote_provenance where hash = decode(%(hash)s, 'hex')
),
inserted as (
  insert into byrote_provenance (hash, doc)
  select decode(%(hash)s, 'hex'), %(doc)s::jsonb
  where not exists (select 1 from known)
  -- Waits for a session that is inserting the same row. `do update` would return that row, and would need a
  -- privilege that workers have no other use for: environments are never changed.
  on conflict (hash) do nothing
  returning provenance_id
)
select coalesce(
  (select provenance_id from known),
  (select provenance_id from inserted),
  byrote_provenance_of(decode(%(hash)s, 'hex'))
) as provenance_id, exists (select from inserted) as inserted;
