-- samples.exact_io: one row per application run, file system and direction with counters by job
with

exact_runs as (
    select * from samples.exact_runs
),

exact_samples as (
    select * from samples.exact_samples
),

run_counter_deltas as (
    select * from samples.run_counter_deltas
),

-- without an operation of any run of a machine, it is unknown whether its runs had operations
known as (
    select distinct
        cluster,
        filesystem
    from run_counter_deltas
    where metadata_operation_count is not null
),

sums as (
    select
        cluster,
        job_id,
        started_at,
        filesystem,
        sum(read_bytes) as read_bytes,
        sum(written_bytes) as written_bytes,
        sum(metadata_operation_count)::bigint as metadata_operation_count
    from run_counter_deltas
    group by all
),

directed as (
    select
        exact_runs.*,
        case when known.filesystem is not null then coalesce(sums.metadata_operation_count, 0) end
            as metadata_operation_count,
        unnest(['read', 'write']) as direction,
        unnest([coalesce(sums.read_bytes, 0), coalesce(sums.written_bytes, 0)])::double as volume_bytes
    from exact_runs
    left join sums using (cluster, job_id, started_at, filesystem)
    left join known using (cluster, filesystem)
),

measured as (
    select
        directed.*,
        directed.volume_bytes / (directed.step_count * directed.interval_s) as mean_bytes_per_s,
        1 - list_count(exact_samples.sample_bytes_per_s) / directed.step_count as missing_ratio,
        list_max(exact_samples.sample_bytes_per_s) as highest_bytes_per_s
    from directed
    left join exact_samples using (cluster, job_id, started_at, filesystem, direction)
)

select
    ended_on,
    cluster,
    job_id,
    started_at,
    filesystem,
    direction,
    outcome,
    volume_bytes,
    mean_bytes_per_s,
    case when volume_bytes = 0 then 0 else greatest(highest_bytes_per_s, mean_bytes_per_s) end as peak_bytes_per_s,
    missing_ratio,
    metadata_operation_count
from measured
order by ended_on, cluster, job_id, started_at, filesystem, direction
