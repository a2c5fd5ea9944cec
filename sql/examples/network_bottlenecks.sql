-- network_bottlenecks: requests that took most time
select
    trace_id,
    source_node,
    target_node,
    start_s,
    value,
    median_value
from network_bottlenecks
where metric = 'time'
order by score desc
limit 10
