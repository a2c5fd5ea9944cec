-- inference_checks: agreement of inferred and measured classes
select
    direction,
    count(*) as run_count,
    avg(is_same_class::int) as same_class_ratio
from inference_checks
where not is_training_run
group by direction
