-- samples.filesystem_runs: one row per file system and run of a known application that may have used it
with

jobs as (
    select * from stage.jobs
    where is_application_run and started_at is not null and application_id is not null
),

filesystems as (
    select distinct filesystem
    from stage.filesystem_rates
),

partition_filesystems as (
    select * from settings.partition_filesystems
)

-- its own file system where the log says which, else those of its partition, else every polled one
select
    jobs.application_id,
    jobs.cluster,
    jobs.job_id,
    jobs.started_at,
    jobs.ended_at,
    coalesce(jobs.filesystem, partition_filesystems.filesystem, filesystems.filesystem) as filesystem
from jobs
left join partition_filesystems
    on jobs.filesystem is null and jobs.partition = partition_filesystems.partition
left join filesystems
    on jobs.filesystem is null and partition_filesystems.filesystem is null
order by filesystem, jobs.application_id, jobs.started_at, jobs.ended_at nulls first, jobs.cluster, jobs.job_id
