-- Tasks that no live worker of their queue knows, observed within the last two minutes.
select
  entry.queue_name, entry.task_path, entry.task_version, entry.since, extract(epoch from entry.waited)::float8 as waited_s,
  array(
    select distinct task
    from byrote_workers as worker
    cross join unnest(worker.tasks) as known (task)
    where worker.seen_at > (select byrote_now()) - interval '45 seconds'
    order by task
    limit 1000
  ) as known,
  queue.unserved_for
from byrote_unserved as entry
left join byrote_queues as queue using (queue_name)
where entry.seen_at > (select byrote_now()) - interval '2 minutes'
order by entry.queue_name, entry.task_path, entry.task_version;
