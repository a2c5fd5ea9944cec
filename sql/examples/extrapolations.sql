-- extrapolations: traces that were extrapolated, and to how many ranks
select
    trace_set,
    process_count,
    outcome,
    class_count,
    written_bytes
from extrapolations
order by trace_set, process_count
