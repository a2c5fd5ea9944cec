-- signature_checks: similarity of signatures to traced runs they were not computed from
select
    application_id,
    direction,
    method,
    correlation,
    missed_burst_count
from signature_checks
where is_training_run is not true
order by correlation desc nulls last
limit 10
