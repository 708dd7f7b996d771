-- The counts of a window that ends now, by queue, task, measure and bucket.
select queue_name, task_path, task_version, measure, bucket, sum(n)::bigint as n
from byrote_stats
where minute > (select byrote_now()) - %(window)s::interval
  and (%(queues)s::text[] is null or queue_name = any (%(queues)s))
  and (%(tasks)s::text[] is null or task_path = any (%(tasks)s))
group by queue_name, task_path, task_version, measure, bucket
order by queue_name, task_path, task_version;
