-- samples.sample_sets: one row per application, file system, direction, metric and run with a sample in the set
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
        metrics.metric,
        interval_s,
        step_count,
        case when metrics.metric = 'operations' then volume_operations end as volume_operations,
        'server' as source
    from samples.samples
    cross join (values ('bytes'), ('operations')) as metrics (metric)
    where $samples_from in ('shared', 'best') and (metrics.metric = 'bytes' or volume_operations is not null)
    union all
    select
        application_id,
        cluster,
        job_id,
        started_at,
        ended_on,
        filesystem,
        direction,
        'bytes' as metric,
        interval_s,
        step_count,
        null::double as volume_operations,
        'jobstats' as source
    from samples.exact_samples
    where $samples_from in ('exact', 'best')
),

-- a trace that no poll confirms counts only where this is wanted
trace_samples as (
    select
        *,
        'bytes' as metric,
        null::double as volume_operations,
        'client' as source,
        0.0::double as missing_ratio
    from samples.trace_samples
    where $samples_from in ('exact', 'best', 'traced')
        and (outcome = 'measured' or (outcome = 'no_polls' and $samples_from = 'traced'))
),

jobs as (
    select * from stage.jobs
),

job_io_sources as (
    select * from samples.job_io_sources
),

all_samples as (
    select
        samples.*,
        case when samples.metric = 'bytes' then coalesce(job_io_sources.own_bytes, job_io_sources.filesystem_bytes) end
            as sample_bytes,
        job_io_sources.missing_ratio
    from samples
    inner join job_io_sources
        on samples.cluster = job_io_sources.cluster
        and samples.job_id = job_io_sources.job_id
        and samples.started_at = job_io_sources.started_at
        and samples.filesystem = job_io_sources.filesystem
        and samples.direction = job_io_sources.direction
        and samples.source = job_io_sources.source
    where job_io_sources.outcome = 'measured'
    union all by name
    select
        application_id,
        cluster,
        job_id,
        started_at,
        ended_on,
        filesystem,
        direction,
        metric,
        interval_s,
        step_count,
        volume_operations,
        source,
        traced_bytes as sample_bytes,
        missing_ratio
    from trace_samples
),

measured as (
    select
        all_samples.*,
        jobs.node_count,
        jobs.duration_s,
        coalesce(
            jobs.state in (
                'BOOT_FAIL', 'CANCELLED', 'DEADLINE', 'NODE_FAIL', 'OUT_OF_MEMORY', 'PREEMPTED', 'TIMEOUT'
            ),
            false
        ) as is_truncated,
        left(all_samples.application_id, length(all_samples.application_id) - length(jobs.node_count::varchar))
        || '*' as merged_id
    from all_samples
    inner join jobs using (cluster, job_id, started_at)
    where all_samples.application_id is not null
        and jobs.node_count is not null
        and jobs.duration_s > 0
        and not ($excludes_shared_nodes and coalesce(jobs.has_shared_nodes, false))
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

-- the samples of one source have one step: that of its latest run
dated as (
    select
        *,
        first_value(interval_s) over (
            partition by application_id, filesystem, direction, metric, source
            order by started_at desc, cluster, job_id
        ) as set_interval_s,
        max(started_at) over (partition by application_id, filesystem, direction, metric) as last_started_at
    from all_sets
),

latest as (
    select *
    from dated
    where interval_s = set_interval_s and started_at >= last_started_at - to_days($signature_window_days)
    qualify
        row_number() over (
            partition by application_id, filesystem, direction, metric, source
            order by started_at desc, cluster, job_id
        ) <= $max_sample_count
),

counts as (
    select
        application_id,
        filesystem,
        direction,
        metric,
        source,
        count(*) as sample_count
    from latest
    group by all
),

-- a run's own bytes are better than the traffic of all, and counters hold what a trace may lack; a set has samples of
-- one source: the best with enough samples, otherwise that with the most
chosen as (
    select
        application_id,
        filesystem,
        direction,
        metric,
        source
    from counts
    qualify
        row_number() over (
            partition by application_id, filesystem, direction, metric
            order by
                least(sample_count, $min_sample_count) desc,
                list_position(['jobstats', 'client', 'server'], source)
        ) = 1
)

select
    application_id,
    filesystem,
    direction,
    metric,
    cluster,
    job_id,
    started_at,
    ended_on,
    node_count,
    interval_s,
    step_count,
    duration_s,
    is_truncated,
    sample_bytes,
    missing_ratio,
    source,
    volume_operations
from latest
semi join chosen using (application_id, filesystem, direction, metric, source)
order by application_id, filesystem, direction, metric, node_count, started_at, cluster, job_id
