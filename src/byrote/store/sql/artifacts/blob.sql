-- The content of a small artifact.
select data
from byrote_artifact_blobs
where hash = decode(%(hash)s, 'hex');
