-- job_io_sources: runs with several sources of bytes
select
    cluster,
    job_id,
    started_at,
    list(distinct source) as sources
from job_io_sources
group by cluster, job_id, started_at
having count(distinct source) > 1
order by started_at desc
limit 10
