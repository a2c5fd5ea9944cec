-- metadata_io: runs with most metadata operations
select
    job_id,
    filesystem,
    sum(metadata_operation_count) as operation_count
from metadata_io
group by all
order by operation_count desc nulls last
limit 10
