-- metadata_rates: periodic metadata operations of runs
select
    job_id,
    filesystem,
    period_s,
    metadata_operation_count
from metadata_rates
where outcome = 'periodic'
order by metadata_operation_count desc
