-- Give an environment its number: the one it has already, else a new one.
with known as (
  select provenance_id from byrote_provenance where hash = decode(%(hash)s, 'hex')
),
made as (
  insert into byrote_provenance (hash, doc)
  select decode(%(hash)s, 'hex'), %(doc)s::jsonb
  where not exists (select 1 from known)
  -- Somebody else may be doing the same this very moment; this waits for them and answers all the same.
  on conflict (hash) do update set hash = excluded.hash
  returning provenance_id
)
select provenance_id from known
union all
select provenance_id from made;
