-- samples.exact_io: one row per application run, file system and direction of which servers counted by job
with

exact_runs as (
    select * from samples.exact_runs
),

exact_samples as (
    select * from samples.exact_samples
),

sums as (
    select
        cluster,
        job_id,
        started_at,
        filesystem,
        sum(read_bytes) as read_bytes,
        sum(written_bytes) as written_bytes
    from samples.run_rises
    group by all
),

directed as (
    select
        exact_runs.*,
        exact_runs.last_step - exact_runs.first_step + 1 as step_count,
        unnest(['read', 'write']) as direction,
        unnest([coalesce(sums.read_bytes, 0), coalesce(sums.written_bytes, 0)])::double as volume_bytes
    from exact_runs
    left join sums using (cluster, job_id, started_at, filesystem)
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
    missing_ratio
from measured
order by ended_on, cluster, job_id, started_at, filesystem, direction
