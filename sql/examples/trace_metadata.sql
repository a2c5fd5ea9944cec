-- trace_metadata: metadata calls of each traced run
select
    trace_id,
    operation,
    count(*) as call_count
from trace_metadata
group by all
order by call_count desc
limit 10
