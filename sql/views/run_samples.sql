-- run_samples: rates along runs, from their own counters (jobstats), traces (client) or polls of all traffic (server)
select
    'jobstats' as source,
    cluster,
    job_id,
    started_at,
    ended_on,
    filesystem,
    direction,
    grid_started_at,
    interval_s,
    sample_bytes_per_s,
    null::double[] as sample_operations_per_s,
    outcome
from exact_samples
union all
select
    'client' as source,
    cluster,
    job_id,
    started_at,
    ended_on,
    filesystem,
    direction,
    grid_started_at,
    interval_s,
    sample_bytes_per_s,
    null::double[] as sample_operations_per_s,
    outcome
from trace_samples
union all
select
    'server' as source,
    cluster,
    job_id,
    started_at,
    ended_on,
    filesystem,
    direction,
    grid_started_at,
    interval_s,
    sample_bytes_per_s,
    sample_operations_per_s,
    'measured' as outcome
from samples
