-- samples.joint_runs: one row per run, file system and direction active during a sample of a joint subject
with

sample_sets as (
    select * from samples.sample_sets
),

joint_subjects as (
    select * from samples.joint_subjects
),

samples as (
    select * from samples.samples
    where application_id is not null
),

jobs as (
    select
        cluster,
        job_id,
        started_at,
        duration_s,
        started_at + to_microseconds(round_even(duration_s * 1e6, 0)::bigint) as ended_at
    from stage.jobs
    where duration_s > 0
),

meant as (
    select
        *,
        started_at + to_microseconds(round_even(duration_s * 1e6, 0)::bigint) as ended_at
    from sample_sets
    semi join joint_subjects using (application_id, filesystem, direction, metric)
),

-- a run that was there may have ended a month later, and no more
days as (
    select
        (min(started_at) at time zone 'UTC')::date as first_on,
        (max(ended_at) at time zone 'UTC')::date + 31 as last_on
    from meant
),

runs as (
    select
        samples.application_id,
        samples.cluster,
        samples.job_id,
        samples.started_at,
        jobs.ended_at,
        jobs.duration_s,
        samples.ended_on,
        samples.filesystem,
        samples.direction,
        samples.grid_started_at,
        samples.interval_s,
        samples.step_count
    from samples
    inner join jobs using (cluster, job_id, started_at)
    inner join days on samples.ended_on between days.first_on and days.last_on
)

select
    runs.*,
    meant.job_id is not null as is_sample
from runs
left join meant
    on runs.application_id = meant.application_id
    and runs.filesystem = meant.filesystem
    and runs.direction = meant.direction
    and runs.cluster = meant.cluster
    and runs.job_id = meant.job_id
    and runs.started_at = meant.started_at
where
    exists (
        select 1 from meant as spans
        where
            runs.filesystem = spans.filesystem
            and runs.direction = spans.direction
            and runs.started_at <= spans.ended_at
            and runs.ended_at >= spans.started_at
    )
order by runs.application_id, runs.started_at, runs.cluster, runs.job_id, runs.filesystem, runs.direction
