-- run_samples: rates along runs, from their own counters (jobstats), traces (client) or polls of all traffic (server)
select
    source,
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
    outcome
from (
    select
        *,
        'jobstats' as source
    from exact_samples
    union all by name
    select
        *,
        'client' as source
    from trace_samples
    union all by name
    select
        *,
        'server' as source,
        'measured' as outcome
    from samples
) as all_samples
