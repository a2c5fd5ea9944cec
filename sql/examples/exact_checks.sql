-- exact_checks: similarity of signatures to counted runs they were not computed from
select
    method,
    median(correlation) as median_correlation,
    count(*) as run_count
from exact_checks
where not is_training_run
group by method
order by median_correlation desc nulls last
