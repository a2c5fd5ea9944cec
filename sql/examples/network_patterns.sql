-- network_patterns: named patterns of whole runs
select
    trace_id,
    source_layer,
    target_layer,
    metric,
    pattern
from network_patterns
where is_whole_run and pattern is not null
order by all
