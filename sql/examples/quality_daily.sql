-- quality_daily: days with failed checks
select
    day,
    table_name,
    expectation,
    severity,
    unexpected_count
from quality_daily
where not success
order by day desc, table_name
