-- The prefix of this database's objects in storage that other databases may share.
select home::text
from byrote_artifact_home;
