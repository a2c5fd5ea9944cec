-- trace_calls: functions that each traced run called most
select
    trace_id,
    function,
    count(*) as call_count
from trace_calls
group by all
order by call_count desc
limit 10
