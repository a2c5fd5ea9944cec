-- samples.job_io_sources: one row per run, file system, direction and source of measurement: the inputs of `job_io`
with

server_io as (
    select * from samples.server_io
),

client_io as (
    select * from samples.client_io
),

exact_io as (
    select * from samples.exact_io
),

-- polls hold the traffic of all jobs; counters by job and traces hold the bytes of the run itself
all_sides as (
    select
        ended_on,
        cluster,
        job_id,
        started_at,
        filesystem,
        direction,
        'server' as source,
        null::varchar as trace_id,
        outcome,
        volume_bytes as filesystem_bytes,
        null::double as own_bytes,
        mean_bytes_per_s,
        peak_bytes_per_s,
        poll_count,
        missing_ratio,
        concurrent_job_count,
        null::bigint as metadata_operation_count
    from server_io
    union all
    select
        ended_on,
        cluster,
        job_id,
        started_at,
        filesystem,
        direction,
        'jobstats' as source,
        null::varchar as trace_id,
        outcome,
        null::double as filesystem_bytes,
        volume_bytes as own_bytes,
        mean_bytes_per_s,
        peak_bytes_per_s,
        null::bigint as poll_count,
        missing_ratio,
        null::bigint as concurrent_job_count,
        metadata_operation_count
    from exact_io
    union all
    select
        ended_on,
        cluster,
        job_id,
        started_at,
        filesystem,
        direction,
        'client' as source,
        trace_id,
        case when volume_bytes is null then 'unknown_sizes' else 'measured' end as outcome,
        null::double as filesystem_bytes,
        volume_bytes as own_bytes,
        mean_bytes_per_s,
        peak_bytes_per_s,
        null::bigint as poll_count,
        null::double as missing_ratio,
        null::bigint as concurrent_job_count,
        null::bigint as metadata_operation_count
    from client_io
)

select * from all_sides
order by ended_on, cluster, job_id, started_at, filesystem, direction, source, trace_id
