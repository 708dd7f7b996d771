-- The name of this database's part of a place that others may share.
select home::text
from byrote_artifact_home;
