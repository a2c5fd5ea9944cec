-- samples.sample_pairs: one row per application run, file system and direction with a cut sample and an exact one
with

exact_samples as (
    select * from samples.exact_samples
),

samples as (
    select * from samples.samples
),

pairs as (
    select
        exact_samples.*,
        samples.sample_bytes_per_s as cut_bytes_per_s,
        samples.grid_started_at as cut_grid_started_at,
        samples.interval_s as cut_interval_s,
        list_sum(exact_samples.sample_bytes_per_s) * exact_samples.interval_s as exact_bytes,
        list_sum(samples.sample_bytes_per_s) * samples.interval_s as cut_bytes
    from exact_samples
    inner join samples using (cluster, job_id, started_at, filesystem, direction)
)

select
    ended_on,
    application_id,
    cluster,
    job_id,
    started_at,
    filesystem,
    direction,
    exact_bytes,
    cut_bytes,
    case when exact_bytes > 0 then cut_bytes / exact_bytes end as overestimation_factor,
    grid_started_at,
    interval_s,
    sample_bytes_per_s,
    cut_grid_started_at,
    cut_interval_s,
    cut_bytes_per_s
from pairs
order by cluster, job_id, started_at, filesystem, direction
