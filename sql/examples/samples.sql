-- samples: mean rate of the file system during each run
select
    job_id,
    filesystem,
    direction,
    list_avg(sample_bytes_per_s) as mean_bytes_per_s
from samples
order by mean_bytes_per_s desc nulls last
limit 10
