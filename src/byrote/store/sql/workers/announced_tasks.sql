-- The tasks that live workers know, whether each is only a default alias, and the different policies announced of it.
select
  known.task,
  bool_and(known.task = any (worker.aliases)) as alias,
  coalesce(
    jsonb_agg(distinct worker.policies -> known.task) filter (where worker.policies -> known.task is not null), '[]'
  )::text as policies
from byrote_workers as worker
cross join unnest(worker.tasks) as known (task)
where worker.seen_at > (select byrote_now()) - interval '45 seconds'
group by known.task
order by known.task
limit 10000;
