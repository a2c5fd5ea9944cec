-- trace_samples: traces that the servers confirm or contradict
select
    tracer,
    outcome,
    count(*) as trace_count,
    sum(excess_bytes) as excess_bytes
from trace_samples
group by all
order by all
