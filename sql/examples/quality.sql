-- quality: failed checks
select
    table_name,
    expectation,
    severity,
    observed,
    unexpected_count
from quality
where not success
order by severity, table_name
