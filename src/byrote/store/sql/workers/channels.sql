-- The channels of the notifications to workers and services: their names in this schema, and what each is for.
select byrote_channel(kind) as name, kind
from unnest(array['byrote_ready', 'byrote_cancel', 'byrote_watch', 'byrote_returned']) as kind;
