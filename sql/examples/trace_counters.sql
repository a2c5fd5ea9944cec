-- trace_counters: traced runs with the largest share of time in metadata calls
select
    trace_id,
    module,
    metadata_time_s / nullif(read_time_s + write_time_s + metadata_time_s, 0) as metadata_time_ratio
from trace_counters
order by metadata_time_ratio desc nulls last
limit 10
