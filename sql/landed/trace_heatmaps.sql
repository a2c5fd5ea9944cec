-- landed.trace_heatmaps: one row per traced run, module, rank and direction
select
    ended_on,
    trace_id,
    module,
    rank,
    direction,
    interval_s,
    step_count,
    bin_bytes
from landed.trace_heatmaps
order by ended_on, trace_id, module, direction, rank
