-- What runs leave behind besides their result: who stored what, and small contents by their hash.

-- Names this database's part of a directory or bucket that several databases may share.
create table byrote_artifact_home (
  home uuid not null default gen_random_uuid()
);
insert into byrote_artifact_home default values;

create table byrote_artifact_blobs (
  hash bytea primary key,
  size bigint not null,
  touched_at timestamptz not null,
  data bytea not null,
  constraint byrote_blob_is_sound check (size = octet_length(data) and size <= 1048576 and hash = sha256(data))
);
-- Contents are often compressed already, and are read whole.
alter table byrote_artifact_blobs alter column data set storage external;

create table byrote_artifacts (
  result_id uuid not null,
  at timestamptz not null,
  size bigint not null,
  attempt integer not null,
  name text collate "C" not null,
  hash bytea not null,
  media_type text not null,
  place text collate "C" not null,
  primary key (result_id, attempt, name),
  constraint byrote_artifact_is_sound check (
    size >= 0 and octet_length(hash) = 32 and length(name) between 1 and 200 and length(media_type) <= 200
  )
);
create index byrote_artifacts_by_hash on byrote_artifacts (hash);

insert into byrote_duties (duty, next_at) values ('artifacts', '-infinity');
