-- counter_job_totals: jobs with most written bytes, as servers name them
select
    job_key,
    filesystem,
    written_bytes,
    read_bytes
from counter_job_totals
order by written_bytes desc nulls last
limit 10
