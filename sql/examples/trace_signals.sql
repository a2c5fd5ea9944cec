-- trace_signals: highest rates of traced runs
select
    trace_id,
    module,
    direction,
    volume_bytes,
    peak_bytes_per_s
from trace_signals
order by peak_bytes_per_s desc nulls last
limit 10
