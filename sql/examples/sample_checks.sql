-- sample_checks: how far shared traffic overstates a run
select
    job_id,
    filesystem,
    direction,
    overestimation_factor,
    cut_correlation
from sample_checks
order by overestimation_factor desc nulls last
limit 10
