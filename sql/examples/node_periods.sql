-- node_periods: nodes whose bursts lag behind most
select
    trace_id,
    host,
    direction,
    period_s,
    lag_s
from node_periods
where outcome = 'periodic'
order by abs(lag_s) desc nulls last
limit 10
