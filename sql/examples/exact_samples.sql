-- exact_samples: runs whose rate servers counted
select
    job_id,
    filesystem,
    direction,
    outcome,
    step_count * interval_s as duration_s
from exact_samples
order by duration_s desc
limit 10
