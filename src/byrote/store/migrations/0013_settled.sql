-- How far the log of events is settled, whatever other databases of the server are at.

-- Every transaction below this one has ended, or is another database's and cannot write here. A snapshot knows the
-- transactions of the whole server; one is left out only where its lock names a session of another database. On a
-- standby a snapshot does not list them, so there the oldest counts.
create function byrote_settled() returns xid8
language sql stable
as $$
  with snapshot as materialized (
    select pg_current_snapshot() as seen
  ),
  strangers as materialized (
    select locks.transactionid
    from pg_locks as locks
    join pg_stat_activity as session on session.pid = locks.pid
    where locks.locktype = 'transactionid'
      and locks.mode = 'ExclusiveLock'
      and locks.granted
      and session.datid <> (select oid from pg_database where datname = current_database())
  )
  select case
    when pg_is_in_recovery() then pg_snapshot_xmin(seen)
    else least(
      pg_snapshot_xmax(seen),
      pg_current_xact_id_if_assigned(),
      (
        select running.xid
        from pg_snapshot_xip(seen) as running (xid)
        where not exists (select from strangers where strangers.transactionid = running.xid::xid)
        order by running.xid
        limit 1
      )
    )
  end
  from snapshot
$$;
