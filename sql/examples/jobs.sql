-- jobs: runs and node hours by user
select
    jobs.user,
    count(*) as run_count,
    sum(node_count * duration_s) / 3600 as node_hours
from jobs
where is_application_run
group by jobs.user
order by node_hours desc nulls last
limit 10
