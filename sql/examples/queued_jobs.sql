-- queued_jobs: waiting jobs by reason, at the last query
select
    wait_reason,
    count(*) as job_count
from queued_jobs
where
    queue_state = 'PENDING'
    and observed_at = (select max(queries.observed_at) from queued_jobs as queries)
group by wait_reason
order by job_count desc
