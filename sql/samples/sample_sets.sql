-- samples.sample_sets: one row per application, file system, direction and run with a sample in the set
with

samples as (
    select
        application_id,
        cluster,
        job_id,
        started_at,
        ended_on,
        filesystem,
        direction,
        interval_s,
        step_count,
        'server' as source
    from samples.samples
    where $samples_from <> 'exact'
    union all
    select
        application_id,
        cluster,
        job_id,
        started_at,
        ended_on,
        filesystem,
        direction,
        interval_s,
        step_count,
        'jobstats' as source
    from samples.exact_samples
    where $samples_from <> 'shared'
),

jobs as (
    select * from stage.jobs
),

job_io_sources as (
    select * from samples.job_io_sources
),

measured as (
    select
        samples.application_id,
        samples.filesystem,
        samples.direction,
        samples.cluster,
        samples.job_id,
        samples.started_at,
        samples.ended_on,
        samples.interval_s,
        samples.step_count,
        samples.source,
        jobs.node_count,
        jobs.duration_s,
        coalesce(job_io_sources.own_bytes, job_io_sources.filesystem_bytes) as sample_bytes,
        job_io_sources.missing_ratio,
        left(samples.application_id, length(samples.application_id) - length(jobs.node_count::varchar))
        || '*' as merged_id
    from samples
    inner join jobs
        on samples.cluster = jobs.cluster
        and samples.job_id = jobs.job_id
        and samples.started_at = jobs.started_at
    inner join job_io_sources
        on samples.cluster = job_io_sources.cluster
        and samples.job_id = job_io_sources.job_id
        and samples.started_at = job_io_sources.started_at
        and samples.filesystem = job_io_sources.filesystem
        and samples.direction = job_io_sources.direction
        and samples.source = job_io_sources.source
    where samples.application_id is not null
        and jobs.node_count is not null
        and jobs.duration_s > 0
        and job_io_sources.outcome = 'measured'
        and not ($excludes_shared_nodes and coalesce(jobs.has_shared_nodes, false))
    -- what servers counted for the run itself is better than the traffic of all
    qualify
        row_number() over (
            partition by
                samples.cluster, samples.job_id, samples.started_at, samples.filesystem, samples.direction
            order by samples.source = 'server'
        ) = 1
),

-- applications that ran at one size only have no set over all sizes
several_sizes as (
    select merged_id
    from measured
    where $has_merged_sizes
    group by merged_id
    having count(distinct node_count) > 1
),

merged as (
    select measured.* replace (measured.merged_id as application_id)
    from measured
    inner join several_sizes on measured.merged_id = several_sizes.merged_id
),

all_sets as (
    select * from measured
    union all by name
    select * from merged
),

-- a set has exact samples alone where there are enough of them
of_one_kind as (
    select *
    from all_sets
    qualify
        source = 'jobstats'
        or count(*) filter (where source = 'jobstats') over (partition by application_id, filesystem, direction)
        < $min_sample_count
),

-- the samples of a set have one step: that of the latest run's
dated as (
    select
        *,
        first_value(interval_s) over latest as set_interval_s,
        first_value(started_at) over latest as last_started_at
    from of_one_kind
    window latest as (
        partition by application_id, filesystem, direction
        order by started_at desc, cluster, job_id
    )
),

alike as (
    select
        *,
        row_number() over (
            partition by application_id, filesystem, direction
            order by started_at desc, cluster, job_id
        ) as age
    from dated
    where interval_s = set_interval_s and started_at >= last_started_at - to_days($signature_window_days)
)

select
    application_id,
    filesystem,
    direction,
    cluster,
    job_id,
    started_at,
    ended_on,
    node_count,
    interval_s,
    step_count,
    duration_s,
    sample_bytes,
    missing_ratio,
    source
from alike
where age <= $max_sample_count
order by application_id, filesystem, direction, node_count, started_at, cluster, job_id
