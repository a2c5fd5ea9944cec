-- trace_jobs: traced runs without their job
select
    tracer,
    source_file,
    traced_job_id,
    started_at
from trace_jobs
where job_id is null
order by started_at
