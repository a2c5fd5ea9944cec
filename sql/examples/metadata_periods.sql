-- metadata_periods: periodic metadata calls of traced runs
select
    trace_id,
    operation_group,
    period_s,
    metadata_call_count
from metadata_periods
where outcome = 'periodic'
order by metadata_call_count desc
