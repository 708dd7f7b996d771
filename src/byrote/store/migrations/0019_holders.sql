-- The name of a worker belongs to the token it was registered with, or to those that were made of it by rotation.
-- Null: a worker with a connection to the database, or a service.
alter table byrote_workers add column holder uuid;
