-- Make due runs READY, oldest first, and return when the next one is due.
-- Served by byrote_waiting_for_promote; rows that another transaction is moving are skipped.
with clock as materialized (
  select byrote_now() as now
),
promoted as (
  update byrote_task_runs as run
  set status = 'READY',
      wait_reason = null,
      moves = run.moves + 1
  where run.ctid = any (array(
    select waiting.ctid
    from byrote_task_runs as waiting
    where waiting.status = 'WAITING'
      and waiting.run_after <= (select now from clock)
    order by waiting.run_after
    limit %(limit)s
    for update skip locked
  ))
  returning run.result_id, run.attempts, run.moves, run.queue_name
),
logged as (
  insert into byrote_events (at, kind, runs, attempts, moves)
  select (select now from clock), 'Promoted', array_agg(result_id), array_agg(attempts), array_agg(moves)
  from promoted
  where queue_name <> all (array(select queue_name from byrote_queues where events = 'few'))
  having count(*) > 0
)
select
  (select count(*) from promoted) as promoted,
  byrote_wake(array(select queue_name from promoted)) as notified,
  (
    select extract(epoch from min(later.run_after) - (select now from clock))::float8
    from byrote_task_runs as later
    where later.status = 'WAITING'
      and later.run_after > (select now from clock)
  ) as next_due_s;
