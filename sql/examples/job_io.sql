-- job_io: runs that moved most bytes
select
    job_id,
    filesystem,
    direction,
    estimated_bytes,
    estimate_source
from job_io
where estimated_bytes is not null
order by estimated_bytes desc
limit 10
