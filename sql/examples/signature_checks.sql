-- signature_checks: similarity of signatures to traced runs
select
    application_id,
    direction,
    method,
    correlation,
    missed_burst_count
from signature_checks
order by correlation desc nulls last
limit 10
