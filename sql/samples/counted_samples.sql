-- samples.counted_samples: one row per application run, file system and direction with complete counters
with

exact_samples as (
    select * from samples.exact_samples
    where outcome = 'measured'
),

jobs as (
    select
        cluster,
        job_id,
        started_at,
        ended_at,
        node_count
    from stage.jobs
)

select
    exact_samples.ended_on,
    exact_samples.application_id,
    exact_samples.cluster,
    exact_samples.job_id,
    exact_samples.started_at,
    jobs.ended_at,
    jobs.node_count,
    exact_samples.filesystem,
    exact_samples.direction,
    exact_samples.grid_started_at,
    exact_samples.interval_s,
    exact_samples.sample_bytes_per_s
from exact_samples
left join jobs using (cluster, job_id, started_at)
order by
    exact_samples.application_id,
    exact_samples.cluster,
    exact_samples.job_id,
    exact_samples.started_at,
    exact_samples.filesystem,
    exact_samples.direction
