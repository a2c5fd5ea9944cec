-- trace_requests: request sizes of each traced run
select
    trace_id,
    direction,
    median(request_bytes) as median_bytes,
    count(*) as request_count
from trace_requests
group by all
order by request_count desc
limit 10
