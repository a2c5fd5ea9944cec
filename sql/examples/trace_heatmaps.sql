-- trace_heatmaps: ranks with most bytes
select
    trace_id,
    rank,
    direction,
    list_sum(bin_bytes) as moved_bytes
from trace_heatmaps
order by moved_bytes desc
limit 10
